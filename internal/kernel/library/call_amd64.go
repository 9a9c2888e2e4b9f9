//go:build (linux || darwin) && !static

package library

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

// chainCallAddr is where chainCall of call_amd64.s begins.
var chainCallAddr uintptr

// run makes the calls and returns the status of the last that was made. It
// allocates nothing.
func (c *callChain) run() int32 {
	c.self[0] = uintptr(unsafe.Pointer(c))
	purego.SyscallN(chainCallAddr, c.self[:]...)
	runtime.KeepAlive(c)
	return int32(c.status)
}
