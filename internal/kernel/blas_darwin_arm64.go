package kernel

import (
	"github.com/geoalign/geoalign/internal/kernel/blas"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// systemBLAS returns Accelerate, which multiplies by units of Apple's processors that the built-in product cannot reach.
func systemBLAS() (found gemm.Backend, warning string) { return blas.Find() }
