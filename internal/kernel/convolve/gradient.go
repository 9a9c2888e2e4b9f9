package convolve

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// The gradient of the weights is a sum over all places. Without tiles, and for windows of one place, it is made in
// partial sums, each over a part of the places, which are then added up: so many that threads find work, in a number
// that the sizes fix, as far as they fit into partialFloats, but leastPartials at least.
const (
	leastPartials  = 4
	partialFloats  = 4 << 20
	partialPlaces  = 64  // least places of a partial sum
	partialFilters = 256 // most filters of a unit
)

// sums is how many partial sums there are.
func (s Sizes) sums() int {
	n := min(max(partialFloats/s.weights(), leastPartials), mostPartials)
	return min(n, max(s.all()/partialPlaces, 1))
}

// filterBlocks is how many blocks the filters are cut into.
func (s Sizes) filterBlocks() int { return (s.Out + partialFilters - 1) / partialFilters }

// gradient computes units lo to hi of the partial sums.
func (c *Convolution) gradient(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{TransA: true, N: c.terms(), Alpha: 1, LDC: c.terms()}
	step, blocks := c.block, c.filterBlocks()
	if c.pointwise() {
		step = c.all()
	}
	for i := lo; i < hi; i++ {
		sum, block := i/blocks, i%blocks
		first, end := block*c.Out/blocks, (block+1)*c.Out/blocks
		p.M, p.C, p.Beta = end-first, c.scratch[sum*c.weights()+first*c.terms():], 0
		last := (sum + 1) * c.all() / c.sums()
		for from := sum * c.all() / c.sums(); from < last; from += step {
			to := min(from+step, last)
			p.K = to - from
			p.A = gemm.Matrix{F32: c.y[from*c.Out+first:], LD: c.Out}
			p.B = gemm.Matrix{F32: c.seen(worker, from, to), LD: c.terms()}
			c.multiply(p)
			p.Beta = 1
		}
	}
	*p = gemm.Product{}
}

// collect adds up the partial sums of filters lo to hi.
func (c *Convolution) collect(_, lo, hi int) {
	a, b := lo*c.terms(), hi*c.terms()
	sum := c.scratch[a:b]
	for i := 1; i < c.sums(); i++ {
		vector.Add(sum, sum, c.scratch[i*c.weights():][a:b])
	}
	c.unpack(c.w, c.scratch, lo, hi, c.add)
}
