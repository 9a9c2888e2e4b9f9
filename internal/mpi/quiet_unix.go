//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"bytes"
	"runtime"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// quietly calls f, which loads or initialises MPI, and undoes what that does to signals. The
// calling goroutine is locked to its thread.
//
// Libraries (UCX, Open MPI) install handlers that do not run on the alternate stack, as Go's do;
// the first signal for such a one ends a Go program. Handlers that f changes are put back. The
// threads that f starts have all signals blocked, so that a signal comes to a thread of Go.
func quietly(f func() error) error {
	sigaction, sigmask := dynlib.Libc("sigaction"), dynlib.Libc("pthread_sigmask")
	if sigaction == 0 || sigmask == 0 {
		return f()
	}
	// struct sigaction is 152 bytes in glibc and musl, 16 in macOS; sigset_t 128 and 4.
	type action [256]byte
	const last = 64
	s := new(struct {
		before    [last + 1]action
		now       action
		all, mask [128]byte
	})
	for i := range s.all {
		s.all[i] = 0xff
	}
	setMask := uintptr(2) // SIG_SETMASK
	if runtime.GOOS == "darwin" {
		setMask = 3
	}
	for n := range s.before {
		dynlib.Call(sigaction, uintptr(n), 0, uintptr(unsafe.Pointer(&s.before[n])))
	}
	dynlib.Call(sigmask, setMask, uintptr(unsafe.Pointer(&s.all)), uintptr(unsafe.Pointer(&s.mask)))
	err := f()
	for n := range s.before {
		s.now = action{}
		// One that does not exist fails both times.
		if dynlib.Call(sigaction, uintptr(n), 0, uintptr(unsafe.Pointer(&s.now))) == 0 &&
			!bytes.Equal(s.now[:], s.before[n][:]) {
			dynlib.Call(sigaction, uintptr(n), uintptr(unsafe.Pointer(&s.before[n])), 0)
		}
	}
	dynlib.Call(sigmask, setMask, uintptr(unsafe.Pointer(&s.mask)), 0)
	runtime.KeepAlive(s)
	return err
}
