// Package gemm has the built-in matrix products, packed and tiled in assembly or in Go, what a
// product is, and what a backend has to do. A Tiled is safe for many goroutines.
package gemm
