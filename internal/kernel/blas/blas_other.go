//go:build !((linux || darwin) && (amd64 || arm64)) || static

package blas

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// Find finds nothing: no library is loaded on this system, or by this program.
func Find() (found gemm.Backend, warning string) { return nil, "" }
