package kernel

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// systemBLAS returns none: the built-in product is as fast.
func systemBLAS() (found gemm.Backend, warning string) { return nil, "" }
