//go:build !((linux || darwin) && (amd64 || arm64)) || static

package library

// dnnlFloatFuncs are the functions of oneDNN that take floats; no library can be
// loaded on this system.
type dnnlFloatFuncs struct {
	sum    func(postOps uintptr, scale float32) int32
	linear func(postOps uintptr, kind int32, alpha, beta float32) int32
}

func newDNNLFloatFuncs(map[string]uintptr, int32) dnnlFloatFuncs { return dnnlFloatFuncs{} }
