//go:build !amd64

package kernel

import (
	"github.com/geoalign/geoalign/internal/kernel/blas"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// systemBLAS returns the library that multiplies where there is no assembly for the processor.
func systemBLAS() (found gemm.Backend, warning string) { return blas.Find() }
