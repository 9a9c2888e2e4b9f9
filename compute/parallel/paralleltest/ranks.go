// Package paralleltest has groups of ranks that are goroutines of one process, for tests of
// what several processes train together.
package paralleltest

import (
	"slices"

	"github.com/geoalign/geoalign/compute/parallel"
)

// Rank is a rank of a group of goroutines. Everything that is exchanged is sent to all
// ranks, the sender among them.
type Rank struct {
	// Fail is the error of the next exchange.
	Fail error

	own   int
	wires [][]chan any // from a rank to a rank
	begun error        // of sums since the last Wait
}

var _ parallel.Group = (*Rank)(nil)

// Ranks returns a group of n.
func Ranks(n int) []*Rank {
	wires := make([][]chan any, n)
	for i := range wires {
		for range n {
			wires[i] = append(wires[i], make(chan any, 1))
		}
	}
	ranks := make([]*Rank, n)
	for i := range ranks {
		ranks[i] = &Rank{own: i, wires: wires}
	}
	return ranks
}

// exchange returns what all ranks give, in their order.
func exchange[T any](r *Rank, x T) (all []T, err error) {
	for _, to := range r.wires[r.own] {
		to <- x
	}
	for from := range r.wires {
		all = append(all, (<-r.wires[from][r.own]).(T))
	}
	err, r.Fail = r.Fail, nil
	return all, err
}

// Rank implements parallel.Group.
func (r *Rank) Rank() int { return r.own }

// Size implements parallel.Group.
func (r *Rank) Size() int { return len(r.wires) }

// Sum implements parallel.Group.
func (r *Rank) Sum(x []float32) error {
	all, err := exchange(r, slices.Clone(x))
	if err != nil {
		return err
	}
	copy(x, all[0])
	for _, other := range all[1:] {
		for i, v := range other {
			x[i] += v
		}
	}
	return nil
}

// SumShare implements parallel.Group.
func (r *Rank) SumShare(own, x []float32) error {
	all, err := exchange(r, slices.Clone(x))
	if err != nil {
		return err
	}
	clear(own)
	for _, other := range all {
		for i, v := range other[r.own*len(own):][:len(own)] {
			own[i] += v
		}
	}
	return nil
}

// Begin implements parallel.Group: the sum is made at once.
func (r *Rank) Begin(x []float32) {
	if err := r.Sum(x); r.begun == nil {
		r.begun = err
	}
}

// Wait implements parallel.Group.
func (r *Rank) Wait() error {
	err := r.begun
	r.begun = nil
	return err
}

// Gather implements parallel.Group.
func (r *Rank) Gather(dst, x []float32) ([]float32, error) {
	all, err := exchange(r, slices.Clone(x))
	return append(dst, slices.Concat(all...)...), err
}

// GatherInts implements parallel.Group.
func (r *Rank) GatherInts(dst, x []int32) ([]int32, error) {
	all, err := exchange(r, slices.Clone(x))
	return append(dst, slices.Concat(all...)...), err
}

// GatherBytes implements parallel.Group.
func (r *Rank) GatherBytes(x []byte) ([][]byte, error) { return exchange(r, slices.Clone(x)) }

// All implements parallel.Group.
func (r *Rank) All(ok bool) (bool, error) {
	all, err := exchange(r, ok)
	return !slices.Contains(all, false), err
}
