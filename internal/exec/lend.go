package exec

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/memory"
)

// Lender is a Device that keeps memory of the caller's and can lend it, see Config.Lend.
type Lender interface {
	// Lend returns what stands for host, false if nothing does.
	Lend(host []float32) (Lent, bool)
}

// Lent is memory of a device that stands for memory of the caller's.
type Lent struct {
	Memory Memory // a view, which the machine frees
	Words  int    // of it
	// Place returns the word of value i.
	Place func(i int) int
}

// lend returns what a plan may lie in of Config.Lend: nothing where a device does not lend it.
func (c *Config) lend() (l Lent) {
	if c.Device == nil {
		return Lent{Words: len(c.Lend), Place: func(i int) int { return i }}
	}
	if d, ok := c.Device.(Lender); ok && len(c.Lend) > 0 {
		l, _ = d.Lend(c.Lend)
	}
	return l
}

// borrow places the units that are bound within host where they lie in what it lends, and returns the space between
// them: free until the op that writes them first. What nobody binds there is never free.
func (p *plan) borrow(l Lent, host []float32) *space {
	s := &space{limit: l.Words}
	for i := range p.units {
		u := &p.units[i]
		if at, ok := memory.Index(host, u.external); ok && l.Words > 0 {
			u.lent, u.offset = true, l.Place(at)
			u.to = len(p.entries) // the caller reads it after the run
			s.pieces = append(s.pieces, piece{u.offset, u.offset + u.size, u.from, u.to})
		}
	}
	slices.SortFunc(s.pieces, func(a, b piece) int { return a.offset - b.offset })
	end := 0
	for _, x := range append(slices.Clone(s.pieces), piece{offset: l.Words}) {
		if end < x.offset {
			s.pieces = append(s.pieces, piece{end, x.offset, 0, math.MaxInt})
		}
		end = max(end, x.end)
	}
	slices.SortFunc(s.pieces, func(a, b piece) int { return a.offset - b.offset })
	return s
}

// inLent returns the elements of what is lent that results lie in at some time.
func (p *plan) inLent() (n int) {
	var pieces []piece
	for _, u := range p.units {
		if u.lent && u.external == nil {
			pieces = append(pieces, piece{offset: u.offset, end: u.offset + u.size})
		}
	}
	slices.SortFunc(pieces, func(a, b piece) int { return a.offset - b.offset })
	end := 0
	for _, x := range pieces {
		n += max(x.end-max(x.offset, end), 0)
		end = max(end, x.end)
	}
	return n
}

// Borrowed returns the bytes of Config.Lend that results lie in at some time of a run.
func (m *Machine) Borrowed() int64 {
	if m.plan == nil { // closed
		return 0
	}
	return 4 * int64(m.plan.borrowed)
}
