package budget

import (
	"runtime/debug"
	"sync"
)

// large is the size in bytes of a piece of work before which memory that is no longer used is collected where it
// counts.
const large = 16 << 20

// Shared is memory that goroutines share for their work: of small pieces many go on at once, of large ones few. Make
// one with NewShared.
type Shared struct {
	size int64 // of all at a time
	lean int64 // that pieces which follow each other may take with what those before left

	mu            sync.Mutex
	turn          sync.Cond
	next, serving uint64 // first come, first served: else large pieces would wait for ever among small ones
	used          int64
	waste         int64 // of pieces that ended, since their memory was last collected
	large         int   // pieces at work
}

// NewShared returns size bytes to share. What is no longer used is collected before large pieces where it and they are
// more than lean.
func NewShared(size, lean int64) *Shared {
	s := &Shared{size: size, lean: lean}
	s.turn.L = &s.mu
	return s
}

// Take waits until need bytes are free, all of them where need is more, and takes them until Give. The garbage
// collector lets a program grow to twice what it uses; where large pieces follow each other the memory of those
// before is collected first.
func (s *Shared) Take(need int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(need, s.size)
	mine := s.next
	s.next++
	for s.serving != mine || s.used+n > s.size {
		s.turn.Wait()
	}
	s.serving++
	s.used += n
	if need >= large {
		s.large++
	}
	if s.large > 0 && s.waste > max(s.lean-s.used, s.used/4) {
		s.waste = 0
		debug.FreeOSMemory()
	}
	s.turn.Broadcast()
}

// Give gives back what Take took for the same need.
func (s *Shared) Give(need int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(need, s.size)
	s.used -= n
	s.waste += n
	if need >= large {
		s.large--
	}
	s.turn.Broadcast()
}

// Collect frees the memory of a step of large work, of need bytes, that another step follows.
func (s *Shared) Collect(need int64) {
	if need < large {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waste = 0
	debug.FreeOSMemory()
}
