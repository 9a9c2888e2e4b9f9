package convolve

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Engine is what a convolution needs of the engine.
type Engine interface {
	For(n, grain int, body func(worker, lo, hi int))
	MultiplySerial(p *gemm.Product)
	Threads() int
}

// Convolution computes one convolution, or its gradients, in float32. Parts of images are spread over the threads in
// blocks that the sizes alone fix, and each block is a product on one thread.
type Convolution struct {
	Sizes
	engine             Engine
	direct, directData *direct // of windows, where there are tiles
	block              int     // places of the result in a block

	// Of the call in progress.
	x, w, y []float32
	after   After
	add     bool
	scratch []float32
	packed  []float32

	products []gemm.Product // of each thread
	bodies   struct{ pack, forward, data, scatter, weights, unpack func(worker, lo, hi int) }
}

// Places of the result in a block: enough rows for a product to run at full speed, and no more than the caches have room
// for where what the filters see is gathered.
const (
	gatheredPlaces = 256
	leastPlaces    = 392
	mostPlaces     = 1024
)

// leastChannels are the channels of x for which tiles compute its gradient: of fewer a tile would leave most of its
// columns empty.
const leastChannels = 16

// partials are the sums of weight gradients that are made side by side and then added up, by a fixed number, so that
// the order of additions does not depend on the threads.
const partials = 4

// New makes a convolution that computes with e.
//
// t are the tiles that windows of more than one place are computed by, nil to gather what the windows see and multiply
// it with e.
func New(e Engine, t *gemm.Tiled, s Sizes) *Convolution {
	c := &Convolution{Sizes: s, engine: e, block: s.blockSize(), products: make([]gemm.Product, e.Threads())}
	c.bodies.pack = func(_, lo, hi int) { s.pack(c.packed, c.w, lo, hi) }
	c.bodies.forward, c.bodies.data, c.bodies.scatter = c.forward, c.data, c.scatterData
	c.bodies.weights, c.bodies.unpack = c.gradient, c.collect
	if s.Kernel > 1 {
		c.direct = newDirect(t, newPass(s, e.Threads(), false), e.Threads())
		if s.In >= leastChannels {
			c.directData = newDirect(t, newPass(s, e.Threads(), true), e.Threads())
		}
	}
	return c
}

// all are the places of all results.
func (s Sizes) all() int { return s.Batch * s.out() }

// blockSize cuts the places of the results into blocks of nearly the same size.
func (s Sizes) blockSize() int {
	most := gatheredPlaces
	if s.pointwise() {
		most = min(max(s.all()/8, leastPlaces), mostPlaces)
	}
	return (s.all() + s.blocksOf(most) - 1) / s.blocksOf(most)
}

func (s Sizes) blocksOf(size int) int { return (s.all() + size - 1) / size }

// sums is how many partial sums of weight gradients there are.
func (s Sizes) sums() int { return min(partials, s.Batch) }

// Scratch returns the floats of working memory of any of the three passes.
func (s Sizes) Scratch(threads int) int {
	n := s.sums() * s.weights()
	if !s.pointwise() {
		n = max(n, s.weights()) + threads*s.blockSize()*s.terms()
	}
	if s.Kernel > 1 {
		n = max(n, newPass(s, threads, false).scratch(threads), newPass(s, threads, true).scratch(threads))
	}
	return n
}

// columns is the memory of a thread for what the filters see.
func (c *Convolution) columns(worker int) []float32 {
	size := c.block * c.terms()
	return c.scratch[len(c.scratch)-(worker+1)*size:][:size]
}

// use sets the weights in the order of gather.
func (c *Convolution) use(w, scratch []float32) {
	c.w, c.scratch = w, scratch
	if c.Kernel == 1 {
		c.packed = w
		return
	}
	c.packed = scratch[:c.weights()]
	c.engine.For(c.Out, 1+8192/c.terms(), c.bodies.pack)
}

// done lets go of the memory of the call.
func (c *Convolution) done() {
	c.x, c.w, c.y, c.scratch, c.packed, c.after = nil, nil, nil, nil, nil, After{}
}

// After is what follows a convolution: y is normalised by Columns, with Add (as y) or nil added. Without Columns y is left
// as it is.
type After struct {
	Columns *vector.Columns
	Add     []float32
}

// Forward sets y (B*Ho*Wo, Out) for x (B*H*W, In) and w (Out, In, k, k). scratch has the floats that Scratch asks for.
func (c *Convolution) Forward(y, x, w []float32, after After, scratch []float32) {
	if c.direct != nil {
		c.direct.compute(c.engine, y, x, w, false, after, scratch)
		return
	}
	c.use(w, scratch)
	c.x, c.y, c.after = x, y, after
	c.engine.For(c.blocksOf(c.block), 1, c.bodies.forward)
	c.done()
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

func (c *Convolution) forward(worker, lo, hi int) {
	p := &c.products[worker]
	for i := lo; i < hi; i++ {
		from, to := i*c.block, min((i+1)*c.block, c.all())
		y := c.y[from*c.Out : to*c.Out]
		*p = gemm.Product{TransB: true, M: to - from, N: c.Out, K: c.terms(), Alpha: 1,
			A: gemm.Matrix{F32: c.seen(worker, from, to), LD: c.terms()}, B: gemm.Matrix{F32: c.packed, LD: c.terms()}, C: y, LDC: c.Out}
		c.engine.MultiplySerial(p)
		c.after.finish(y, from*c.Out)
	}
	*p = gemm.Product{}
}

// finish does what follows, for rows of y that begin at element first.
func (a After) finish(y []float32, first int) {
	switch {
	case a.Columns == nil:
	case a.Add != nil:
		a.Columns.Apply(y, y, a.Add[first:][:len(y)])
	default:
		a.Columns.Apply(y, y, nil)
	}
}

// Data sets dx (B*H*W, In) for dy (B*Ho*Wo, Out) and w, or adds to it.
func (c *Convolution) Data(dx, dy, w []float32, add bool, scratch []float32) {
	if c.directData != nil {
		c.directData.compute(c.engine, dx, dy, w, add, After{}, scratch)
		return
	}
	c.use(w, scratch)
	c.x, c.y, c.add = dx, dy, add
	if c.pointwise() {
		c.engine.For(c.blocksOf(c.block), 1, c.bodies.data)
	} else {
		c.engine.For(c.Batch, 1, c.bodies.scatter)
	}
	c.done()
}

// data makes blocks lo to hi of the gradient of a pointwise convolution.
func (c *Convolution) data(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{N: c.In, K: c.Out, Alpha: 1, B: gemm.Matrix{F32: c.packed, LD: c.In}, LDC: c.In}
	if c.add {
		p.Beta = 1
	}
	for i := lo; i < hi; i++ {
		from, to := i*c.block, min((i+1)*c.block, c.all())
		p.M, p.A, p.C = to-from, gemm.Matrix{F32: c.y[from*c.Out:], LD: c.Out}, c.x[from*c.In:]
		c.engine.MultiplySerial(p)
	}
	*p = gemm.Product{}
}

// scatterData makes the gradients of images lo to hi.
func (c *Convolution) scatterData(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{N: c.terms(), K: c.Out, Alpha: 1, B: gemm.Matrix{F32: c.packed, LD: c.terms()}, C: c.columns(worker), LDC: c.terms()}
	if !c.add {
		clear(c.x[lo*c.places()*c.In : hi*c.places()*c.In])
	}
	for image := lo; image < hi; image++ {
		for from := image * c.out(); from < (image+1)*c.out(); from += c.block {
			to := min(from+c.block, (image+1)*c.out())
			p.M, p.A = to-from, gemm.Matrix{F32: c.y[from*c.Out:], LD: c.Out}
			c.engine.MultiplySerial(p)
			c.scatter(c.x, p.C, from, to)
		}
	}
	*p = gemm.Product{}
}

// Weights sets dw (Out, In, k, k) for dy (B*Ho*Wo, Out) and x (B*H*W, In), or adds to it.
func (c *Convolution) Weights(dw, dy, x []float32, add bool, scratch []float32) {
	c.x, c.y, c.w, c.add, c.scratch = x, dy, dw, add, scratch
	c.engine.For(c.sums(), 1, c.bodies.weights)
	c.engine.For(c.Out, 1+8192/c.terms(), c.bodies.unpack)
	c.done()
}

// gradient makes partial sums lo to hi, each of its part of the places.
func (c *Convolution) gradient(worker, lo, hi int) {
	p := &c.products[worker]
	*p = gemm.Product{TransA: true, M: c.Out, N: c.terms(), Alpha: 1, LDC: c.terms()}
	step := c.block
	if c.pointwise() {
		step = c.all()
	}
	for i := lo; i < hi; i++ {
		p.C, p.Beta = c.scratch[i*c.weights():][:c.weights()], 0
		end := (i + 1) * c.all() / c.sums()
		for from := i * c.all() / c.sums(); from < end; from += step {
			to := min(from+step, end)
			p.K = to - from
			p.A = gemm.Matrix{F32: c.y[from*c.Out:], LD: c.Out}
			p.B = gemm.Matrix{F32: c.seen(worker, from, to), LD: c.terms()}
			c.engine.MultiplySerial(p)
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
