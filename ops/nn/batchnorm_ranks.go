package nn

import "github.com/geoalign/geoalign/compute/parallel"

// rankSums exchanges two sums of each of d channels, and the number of rows that they are over, with the other ranks of
// a group. They travel as two float32 each, which hold what a float64 does to 48 bits.
type rankSums struct {
	group     parallel.Group
	own, all  []float32
	d         int
	n         float64   // rows of all ranks
	sum, more []float64 // (d) of this rank
}

// newRankSums are for d channels; nil without a group.
func newRankSums(g parallel.Group, d int) *rankSums {
	if g == nil {
		return nil
	}
	size := 2 + 4*d
	return &rankSums{group: g, d: d, own: make([]float32, size), all: make([]float32, 0, size*g.Size()),
		sum: make([]float64, d), more: make([]float64, d)}
}

// exchange sends the sums with the number of rows n.
func (x *rankSums) exchange(n int) (err error) {
	put := func(at int, v float64) {
		x.own[at] = float32(v)
		x.own[at+1] = float32(v - float64(x.own[at]))
	}
	put(0, float64(n))
	for j := range x.d {
		put(2+4*j, x.sum[j])
		put(4+4*j, x.more[j])
	}
	if x.all, err = x.group.Gather(x.all[:0], x.own); err != nil {
		return err
	}
	x.n = 0
	for rank := range x.group.Size() {
		x.n += x.of(rank, 0)
	}
	return nil
}

// each calls f for every rank, in their order, with its rows and what it sent of channel j.
func (x *rankSums) each(j int, f func(n, sum, more float64)) {
	for rank := range x.group.Size() {
		f(x.of(rank, 0), x.of(rank, 2+4*j), x.of(rank, 4+4*j))
	}
}

// of is the value at a place of what a rank sent.
func (x *rankSums) of(rank, at int) float64 {
	v := x.all[rank*len(x.own)+at:]
	return float64(v[0]) + float64(v[1])
}
