//go:build !(darwin && arm64)

package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// systemBLAS returns none: the built-in product is used.
func systemBLAS() (found gemm.Backend, warning string) { return nil, "" }
