//go:build unix

package budgettest

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what the process took so far: other than the time of a clock it does not count others on the
// machine.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
