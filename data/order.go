package data

import (
	"slices"
	"sync"

	"github.com/geoalign/geoalign/internal/rng"
)

// Order is the order in which a finite training set of n samples is visited: every
// epoch is a permutation of its own, drawn by the generator (seed, order, epoch). It
// may be used by several goroutines.
type Order struct {
	seed  uint64
	n     int
	parts []int // first sample of each part; nil: no parts
	mixed int   // samples that are mixed with each other, of parts

	mu     sync.Mutex
	epochs [2]epochOrder // the two used last: prefetching crosses the border
}

type epochOrder struct {
	epoch uint64
	perm  []uint32
}

// NewOrder returns the order of n samples, n > 0.
func NewOrder(seed uint64, n int) *Order { return &Order{seed: seed, n: n} }

// Parted is implemented by data sets whose images lie together in parts, such as shards, which are
// read best one after the other.
type Parted interface {
	// Parts returns the first image of each part, rising from 0, and the number of samples that are
	// mixed with each other: an epoch visits the parts in random order, and draws the order within
	// each mixed samples; at most 1: as they lie.
	Parts() (first []int, mixed int)
}

// newPartOrder returns the order of n samples in parts, see Parted; without parts that of NewOrder.
func newPartOrder(seed uint64, n int, parts []int, mixed int) *Order {
	o := NewOrder(seed, n)
	o.parts, o.mixed = parts, max(mixed, 1)
	return o
}

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
		o.draw(epoch, p)
		e.epoch, e.perm = epoch, p
	}
	return e.perm
}

// draw writes the permutation of an epoch to p.
func (o *Order) draw(epoch uint64, p []uint32) {
	g := rng.New(o.seed, rng.Order, epoch)
	shuffle := func(p []uint32) { g.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] }) }
	if o.parts == nil {
		for i := range p {
			p[i] = uint32(i)
		}
		shuffle(p)
		return
	}
	k := 0
	for _, part := range g.Perm(len(o.parts)) {
		end := o.n
		if part+1 < len(o.parts) {
			end = o.parts[part+1]
		}
		for i := o.parts[part]; i < end; i++ {
			p[k] = uint32(i)
			k++
		}
	}
	for window := range slices.Chunk(p, o.mixed) {
		shuffle(window)
	}
}
