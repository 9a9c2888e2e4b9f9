package mpi

import (
	"os"
	"runtime"
	"sync/atomic"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// connected is true once MPI was initialised in this process.
var connected atomic.Bool

// Exit ends this process as os.Exit does, and must be called in its place where Connect may have been,
// after Close. MPICH 5 says good-bye to its launcher only in a function that the exit of the C library calls; without
// it the launcher takes the process for a broken one and kills the others.
func Exit(code int) {
	if exit := dynlib.Libc("exit"); connected.Load() && exit != 0 {
		runtime.LockOSThread()
		dynlib.Call(exit, uintptr(code))
	}
	os.Exit(code)
}
