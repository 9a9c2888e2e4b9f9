//go:build (linux || darwin) && (amd64 || arm64) && !static

package library

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// call calls sgemm_ with s. The last two arguments are the lengths of the two
// strings, which Fortran compilers pass out of sight.
func (l *blas) call(s *blasArgs) {
	s.list = [...]uintptr{
		uintptr(unsafe.Pointer(&s.transB)), uintptr(unsafe.Pointer(&s.transA)),
		uintptr(unsafe.Pointer(&s.n)), uintptr(unsafe.Pointer(&s.m)), uintptr(unsafe.Pointer(&s.k)),
		uintptr(unsafe.Pointer(&s.alpha)),
		uintptr(s.b), uintptr(unsafe.Pointer(&s.ldb)),
		uintptr(s.a), uintptr(unsafe.Pointer(&s.lda)),
		uintptr(unsafe.Pointer(&s.beta)),
		uintptr(s.c), uintptr(unsafe.Pointer(&s.ldc)), 1, 1,
	}
	purego.SyscallN(l.fn, s.list[:]...)
	runtime.KeepAlive(s)
}
