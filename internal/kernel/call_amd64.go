//go:build linux || darwin

package kernel

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// sgemmCallAddr is where sgemmCall of call_amd64.s begins.
var sgemmCallAddr uintptr

// callSgemm calls s.fn with the other fields of s and sets s.status. It
// allocates nothing.
func callSgemm(s *sgemmArgs) {
	s.self[0] = uintptr(unsafe.Pointer(s))
	purego.SyscallN(sgemmCallAddr, s.self[:]...)
	runtime.KeepAlive(s)
}
