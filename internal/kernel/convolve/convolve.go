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

// Convolution computes one convolution, or its gradients, in float32. The work is spread over the threads in units that
// the sizes fix or that change no bit, so the number of threads does not either. Nothing is allocated after New.
//
// Windows of one place are products of the images as they lie. Others are computed by tiles that read the images in
// place (direct, filterTiles), or, where there are none, by products of what windows see, which is gathered a block of
// places at a time.
type Convolution struct {
	Sizes
	engine             Engine
	multiply           func(*gemm.Product)
	direct, directData *direct      // nil where products do it
	filters            *filterTiles // nil where products do it
	block              int          // places of the result in a block

	// Of the call in progress.
	x, w, y []float32
	after   After
	add     bool
	scratch []float32
	packed  []float32

	products []gemm.Product // of each thread
	bodies   struct{ pack, turn, forward, finish, data, scatter, weights, unpack func(worker, lo, hi int) }
}

// leastChannels are the channels of x for which tiles compute its gradient: of fewer a tile would leave most of its
// columns empty.
const leastChannels = 16

// New makes a convolution that computes with e and with tiles t, nil for none. Tiles make the products too: the
// convolutions of ResNet-50 take 5 % less time than with those of oneDNN 2.6 (BenchmarkResNet50, two cores of Zen 4).
// Its convolutions are not called: docs/resnet.md compares them.
func New(e Engine, t *gemm.Tiled, s Sizes) *Convolution {
	c := &Convolution{Sizes: s, engine: e, block: s.blockSize(), products: make([]gemm.Product, e.Threads()),
		multiply: e.MultiplySerial}
	if t != nil {
		c.multiply = t.Multiply
	}
	c.bodies.pack = func(_, lo, hi int) { s.pack(c.packed, c.w, lo, hi) }
	c.bodies.turn = func(_, lo, hi int) { s.turn(c.packed, c.w, lo, hi) }
	c.bodies.forward, c.bodies.finish, c.bodies.data, c.bodies.scatter = c.forward, c.finish, c.data, c.scatterData
	c.bodies.weights, c.bodies.unpack = c.gradient, c.collect
	if s.Kernel > 1 {
		c.filters = newFilterTiles(t, s, e.Threads())
		c.direct = newDirect(t, newPass(s, e.Threads(), false), e.Threads())
		if s.In >= leastChannels {
			c.directData = newDirect(t, newPass(s, e.Threads(), true), e.Threads())
		}
	}
	return c
}

// Scratch returns the floats of working memory of any of the three passes.
func (s Sizes) Scratch(threads int) int {
	n := s.sums() * s.weights()
	if !s.pointwise() {
		n = max(n, s.weights()) + threads*s.blockSize()*s.terms()
	}
	if s.Kernel > 1 {
		n = max(n, newPass(s, threads, false).scratch(threads), newPass(s, threads, true).scratch(threads),
			newFilters(s).scratch(threads))
	}
	return n
}

// After is what follows a convolution: y is normalised by Columns, with Add (as y) or nil added. Without Columns y is
// left as it is.
type After struct {
	Columns *vector.Columns
	Add     []float32
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

// Forward sets y (B*Ho*Wo, Out) for x (B*H*W, In) and w (Out, In, k, k). scratch has the floats that Scratch asks for.
func (c *Convolution) Forward(y, x, w []float32, after After, scratch []float32) {
	if c.direct != nil {
		c.direct.compute(c.engine, y, x, w, false, after, scratch)
		return
	}
	if c.use(w, scratch); c.Kernel == 1 {
		c.packed = scratch[:c.weights()]
		c.engine.For((c.Out+turnedFilters-1)/turnedFilters, 1+8192/(turnedFilters*c.In), c.bodies.turn)
	}
	c.x, c.y, c.after = x, y, after
	c.engine.For(c.blocks()*c.parts(c.Out), 1, c.bodies.forward)
	if c.parts(c.Out) > 1 && after.Columns != nil {
		c.engine.For(c.blocks(), 1, c.bodies.finish)
	}
	c.done()
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
		c.engine.For(c.blocks()*c.parts(c.In), 1, c.bodies.data)
	} else {
		c.engine.For(c.Batch, 1, c.bodies.scatter)
	}
	c.done()
}

// Weights sets dw (Out, In, k, k) for dy (B*Ho*Wo, Out) and x (B*H*W, In), or adds to it.
func (c *Convolution) Weights(dw, dy, x []float32, add bool, scratch []float32) {
	if c.filters != nil {
		c.filters.compute(c.engine, dw, dy, x, add, scratch)
		return
	}
	c.x, c.y, c.w, c.add, c.scratch = x, dy, dw, add, scratch
	c.engine.For(c.sums()*c.filterBlocks(), 1, c.bodies.weights)
	c.engine.For(c.Out, c.filterGrain(), c.bodies.unpack)
	c.done()
}

// use sets the weights in the order of gather.
func (c *Convolution) use(w, scratch []float32) {
	c.w, c.scratch = w, scratch
	if c.Kernel == 1 {
		c.packed = w
		return
	}
	c.packed = scratch[:c.weights()]
	c.engine.For(c.Out, c.filterGrain(), c.bodies.pack)
}

// filterGrain is how many filters are worth a thread where they are copied.
func (c *Convolution) filterGrain() int { return 1 + 8192/c.terms() }

// done lets go of the memory of the call.
func (c *Convolution) done() {
	c.x, c.w, c.y, c.scratch, c.packed, c.after = nil, nil, nil, nil, nil, After{}
}
