package kerneltest

import (
	"runtime"
	"time"
)

// Best returns the least seconds of a run of f on this thread, from repeats over
// at least 100 ms: what is above it is other work on the machine.
func Best(f func()) float64 { return BestBy(Clock, f) }

// BestBy is Best by another clock, for what several threads do.
func BestBy(clock func() time.Duration, f func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
	least, start := time.Hour, clock()
	for i := 0; i < 5 || clock()-start < 100*time.Millisecond; i++ {
		t := clock()
		f()
		least = min(least, clock()-t)
	}
	return least.Seconds()
}
