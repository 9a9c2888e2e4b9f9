// Package blas finds and calls the BLAS of a system whose processor has no built-in product in assembly: Accelerate on
// macOS, OpenBLAS on Linux. It is loaded at run time, without cgo.
package blas
