package process

import (
	"sync"
	"sync/atomic"
)

// holds is the number of holds that are not released.
var holds atomic.Int64

// Hold says that the process has something to save or to finish writing, until release is
// called: it should not end meanwhile for a signal that asks it to.
func Hold() (release func()) {
	holds.Add(1)
	return sync.OnceFunc(func() { holds.Add(-1) })
}

// Held says whether something is held.
func Held() bool { return holds.Load() > 0 }
