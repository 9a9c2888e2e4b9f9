//go:build !amd64

package gemm

// NewInt8 returns the product of quantised weights, in Go.
func NewInt8() *Int8 { return PlainInt8() }
