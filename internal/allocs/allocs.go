// Package allocs counts the allocations of code that should make none. Tests use it.
package allocs

import (
	"testing"
)

// attempts is how often a measurement that found allocations is repeated.
const attempts = 10

// PerRun returns how often a run of f allocates: the least of several averages over that
// many runs. One average is not enough, since the runtime counts its own memory among the
// allocations. On a busy machine it starts a thread when the engine's workers, which are
// bound to theirs, have to wait, and five runs between which that happens allocate a dozen
// times. What f allocates in every run is in every average.
//
// Under the race detector, which adds allocations of its own, f is run and nothing is counted: 0.
func PerRun(runs int, f func()) float64 {
	if Race {
		f()
		return 0
	}
	least := testing.AllocsPerRun(runs, f)
	for i := 1; i < attempts && least > 0; i++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
