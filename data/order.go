package data

import (
	"sync"

	"github.com/geoalign/geoalign/internal/rng"
)

// Order is the order in which a finite training set of n samples is visited: every
// epoch is a permutation of its own, drawn by the generator (seed, order, epoch). It
// may be used by several goroutines.
type Order struct {
	seed uint64
	n    int

	mu     sync.Mutex
	epochs [2]epochOrder // the two used last: prefetching crosses the border
}

type epochOrder struct {
	epoch uint64
	perm  []uint32
}

// NewOrder returns the order of n samples, n > 0.
func NewOrder(seed uint64, n int) *Order { return &Order{seed: seed, n: n} }

// At is the number below n of the sample at position c: of the epoch c / n, the one at
// place c mod n.
func (o *Order) At(c uint64) int {
	n := uint64(o.n)
	return int(o.epoch(c / n)[c%n])
}

func (o *Order) epoch(epoch uint64) []uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.epochs[epoch%2]
	if e.perm == nil || e.epoch != epoch {
		// A new slice each time: other goroutines may still read the old one.
		p := make([]uint32, o.n)
		for i := range p {
			p[i] = uint32(i)
		}
		rng.New(o.seed, rng.Order, epoch).Shuffle(o.n, func(i, j int) { p[i], p[j] = p[j], p[i] })
		e.epoch, e.perm = epoch, p
	}
	return e.perm
}
