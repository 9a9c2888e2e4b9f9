//go:build (linux || darwin) && (amd64 || arm64) && !static

package library

import "github.com/ebitengine/purego"

// dnnlFloatFuncs are the functions of oneDNN that take floats, which travel in
// registers of their own.
type dnnlFloatFuncs struct {
	sum    func(postOps uintptr, scale float32) int32
	linear func(postOps uintptr, kind int32, alpha, beta float32) int32 // version 3
}

// newDNNLFloatFuncs binds the functions. The ones of version 3 have further
// arguments (zero point and type of C) or fewer (no scale) than those of version 2.
func newDNNLFloatFuncs(fn map[string]uintptr, major int32) dnnlFloatFuncs {
	var out dnnlFloatFuncs
	if major == 2 {
		purego.RegisterFunc(&out.sum, fn["dnnl_post_ops_append_sum"])
		return out
	}
	var sum func(postOps uintptr, scale float32, zero, kind int32) int32
	purego.RegisterFunc(&sum, fn["dnnl_post_ops_append_sum"])
	purego.RegisterFunc(&out.linear, fn["dnnl_post_ops_append_eltwise"])
	out.sum = func(postOps uintptr, scale float32) int32 { return sum(postOps, scale, 0, 0) }
	return out
}
