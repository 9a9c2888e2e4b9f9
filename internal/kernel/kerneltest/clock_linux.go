package kerneltest

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns the time that this thread has run: on a machine with other work
// it says more than the time of day. The caller must be locked to the thread.
func Clock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
