//go:build (linux || darwin) && !static

package library

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// sgemmFuncs holds the Go function of each library function that was called.
var sgemmFuncs sync.Map

// callSgemm calls s.fn with the other fields of s and sets s.status. Unlike on
// amd64 it goes through reflection, which allocates.
func callSgemm(s *sgemmArgs) {
	type sgemm = func(transA, transB byte, m, n, k int, alpha float32, a unsafe.Pointer, lda int, b unsafe.Pointer,
		ldb int, beta float32, c unsafe.Pointer, ldc int) int32
	f, ok := sgemmFuncs.Load(s.fn)
	if !ok {
		var g sgemm
		purego.RegisterFunc(&g, s.fn)
		f, _ = sgemmFuncs.LoadOrStore(s.fn, g)
	}
	s.status = uintptr(f.(sgemm)(byte(s.transA), byte(s.transB), s.m, s.n, s.k, s.alpha, s.a, s.lda, s.b, s.ldb,
		s.beta, s.c, s.ldc))
}

// run makes the calls and returns the status of the last that was made.
func (c *callChain) run() int32 {
	for i := range c.calls[:c.n] {
		r, _, _ := purego.SyscallN(c.calls[i].fn, c.calls[i].args[:]...)
		c.status = r
		if int32(r) != 0 {
			break
		}
	}
	runtime.KeepAlive(c)
	return int32(c.status)
}
