package kerneltest

import (
	"runtime"
	"time"
)

// Best returns the least seconds of a run of f on this thread, from repeats over
// at least 100 ms: what is above it is other work on the machine.
func Best(f func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
	least, start := time.Hour, Clock()
	for i := 0; i < 5 || Clock()-start < 100*time.Millisecond; i++ {
		t := Clock()
		f()
		least = min(least, Clock()-t)
	}
	return least.Seconds()
}
