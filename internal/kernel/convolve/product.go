package convolve

import "github.com/geoalign/geoalign/internal/kernel/gemm"

// Places of the result in a block: enough rows for a product to run at full speed, and no more than the caches have
// room for where what the filters see is gathered.
const (
	gatheredPlaces = 256
	leastPlaces    = 392
	mostPlaces     = 1024
)

// Few places give few blocks. Then the channels of the result are cut into parts, so that there are about fewUnits
// units for threads to share.
const (
	fewUnits     = 8
	partChannels = 128 // least channels of a part
)

// all are the places of all results.
func (s Sizes) all() int { return s.Batch * s.out() }

// blockSize cuts the places of the results into blocks of nearly the same size.
func (s Sizes) blockSize() int {
	most := gatheredPlaces
	if s.pointwise() {
		most = min(max(s.all()/fewUnits, leastPlaces), mostPlaces)
	}
	return parts(s.all(), most, 1)
}

// blocks is how many blocks there are.
func (s Sizes) blocks() int { return (s.all() + s.blockSize() - 1) / s.blockSize() }

// parts is how many parts n channels of the result are cut into.
func (s Sizes) parts(n int) int { return max(min(fewUnits/s.blocks(), n/partChannels), 1) }

// unit says which places and which of n channels unit i of a product has.
func (c *Convolution) unit(i, n int) (from, to, first, end int) {
	block, part, parts := i/c.parts(n), i%c.parts(n), c.parts(n)
	return block * c.block, min((block+1)*c.block, c.all()), part * n / parts, (part + 1) * n / parts
}

// columns is the memory of a thread for what the filters see.
func (c *Convolution) columns(worker int) []float32 {
	size := c.block * c.terms()
	return c.scratch[len(c.scratch)-(worker+1)*size:][:size]
}

// seen returns what the filters see at places lo to hi of the result.
func (c *Convolution) seen(worker, lo, hi int) []float32 {
	if c.pointwise() {
		return c.x[lo*c.In : hi*c.In]
	}
	columns := c.columns(worker)
	c.gather(columns, c.x, lo, hi)
	return columns[:(hi-lo)*c.terms()]
}

// forward computes units lo to hi of the convolution.
func (c *Convolution) forward(worker, lo, hi int) {
	p := &c.products[worker]
	for i := lo; i < hi; i++ {
		from, to, first, end := c.unit(i, c.Out)
		*p = gemm.Product{M: to - from, N: end - first, K: c.terms(), Alpha: 1, C: c.y[from*c.Out+first:], LDC: c.Out,
			A: gemm.Matrix{F32: c.seen(worker, from, to), LD: c.terms()}}
		if c.Kernel == 1 {
			p.B = gemm.Matrix{F32: c.packed[first:], LD: c.Out}
		} else {
			p.TransB, p.B = true, gemm.Matrix{F32: c.packed[first*c.terms():], LD: c.terms()}
		}
		c.multiply(p)
		if end-first == c.Out {
			c.after.finish(c.y[from*c.Out:to*c.Out], from*c.Out)
		}
	}
	*p = gemm.Product{}
}

// finish does what follows the convolution for blocks lo to hi.
func (c *Convolution) finish(_, lo, hi int) {
	from, to := lo*c.block*c.Out, min(hi*c.block, c.all())*c.Out
	c.after.finish(c.y[from:to], from)
}

// data computes units lo to hi of the gradient of a pointwise convolution.
func (c *Convolution) data(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{K: c.Out, Alpha: 1, LDC: c.In}
	if c.add {
		p.Beta = 1
	}
	for i := lo; i < hi; i++ {
		from, to, first, end := c.unit(i, c.In)
		p.M, p.N, p.C = to-from, end-first, c.x[from*c.In+first:]
		p.A, p.B = gemm.Matrix{F32: c.y[from*c.Out:], LD: c.Out}, gemm.Matrix{F32: c.packed[first:], LD: c.In}
		c.multiply(p)
	}
	*p = gemm.Product{}
}

// scatterData computes the gradients of images lo to hi.
func (c *Convolution) scatterData(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{N: c.terms(), K: c.Out, Alpha: 1, B: gemm.Matrix{F32: c.packed, LD: c.terms()},
		C: c.columns(worker), LDC: c.terms()}
	if !c.add {
		clear(c.x[lo*c.places()*c.In : hi*c.places()*c.In])
	}
	for image := lo; image < hi; image++ {
		for from := image * c.out(); from < (image+1)*c.out(); from += c.block {
			to := min(from+c.block, (image+1)*c.out())
			p.M, p.A = to-from, gemm.Matrix{F32: c.y[from*c.Out:], LD: c.Out}
			c.multiply(p)
			c.scatter(c.x, p.C, from, to)
		}
	}
	*p = gemm.Product{}
}
