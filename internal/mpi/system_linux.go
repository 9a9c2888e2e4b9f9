package mpi

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// affinity says which processors this process may use.
func affinity() string {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return ""
	}
	return fmt.Sprintf("%x", set)
}

// yield gives the processor to another thread that waits for it.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// sleep lets the thread sleep: unlike time.Sleep, without the scheduler of Go, whose processor it keeps
// for that long.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal only ends it early
}

// precise lets sleeps of the calling thread end when they should, and not up to 50 microseconds
// later.
func precise() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) } // without it they last longer

// readsOthers reports whether a process may read the memory of another with process_vm_readv, which
// MPI libraries take for granted. Containers often refuse it, to all processes.
func readsOthers() bool {
	var from, to byte = 1, 0
	local := []unix.Iovec{{Base: &to, Len: 1}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from)), Len: 1}}
	_, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	return !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS)
}
