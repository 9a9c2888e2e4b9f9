package geometric

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/geometric/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PooledArgs are the operands of Pooled.
type PooledArgs struct {
	Neighbours *gorgonia.Node // (B, K) int32 rows of the pool, the anchor among them; -1: none
	Pool       batch.Pool     // of features of width D
	// Key (2) int32 seeds the dropout masks of the head, nil for one without. First is the number of the first anchor
	// in the global batch, where this process is one of several.
	Key   *gorgonia.Node
	First int
	Head  Head
	// Chunk is how many rows pass the head at a time, at least those of one anchor; 0:
	// about AutoRows.
	Chunk int
	// Kernel, Epsilon and Scale: see Options. Unit divides the rows that the head gives by
	// their lengths too.
	Kernel  string
	Epsilon float32
	Scale   string
}

// Head maps points (R, D) to rows (R, C) in the graph of points, with parameters that are
// inputs of that graph. It also returns those, and the nodes elsewhere whose values they
// have. key (3) is that of the dropout masks of these rows, or nil.
type Head func(points, key *gorgonia.Node) (rows *gorgonia.Node, parameters []Parameter)

// Parameter is a parameter and its copy in another graph, of the same shape.
type Parameter struct{ Node, Copy *gorgonia.Node }

// AutoRows is about how many rows pass the head at a time: enough for products at full
// speed.
const AutoRows = 4096

// Anchors returns how many of B anchors with K points are worked on at a time, where chunk
// rows may pass the head at once (0: AutoRows): chunks are as equal as can be.
func Anchors(b, k, chunk int) int {
	if chunk == 0 {
		chunk = AutoRows
	}
	chunks := blocks(b, max(1, chunk/k))
	return blocks(b, chunks)
}

// Pooled returns the geometric regulariser of GeRA (eq. 3 of the paper) for a head of any
// depth, whose points are rows of a pool, a scalar:
//
//	1/B sum_x || W(N(x)) - W(phi(N(x))) ||_F^2
//
// with the K points N(x) of each anchor, the head phi and the row-normalised kernel matrix W.
// An anchor with a neighbour -1 counts 0. The gradient goes to the parameters of the head
// alone.
//
// The B K points need not fit into memory: the head, its loss and their gradient are a
// computation of their own over a chunk of the anchors, which runs for one chunk after the
// other in the forward step, and gradients are added up there. Numbers depend on the chunk
// by rounding alone: dropout masks are a function of the key and the number of the point.
func Pooled(a PooledArgs) *gorgonia.Node {
	fail := func(err error) {
		if err != nil {
			panic(&op.BuildError{Op: pooledKind, Err: err})
		}
	}
	o := Options{Kernel: a.Kernel, Epsilon: a.Epsilon, Scale: a.Scale}
	fail(o.Check())
	fail(op.All(
		op.Need(a.Neighbours != nil && len(a.Neighbours.Shape()) == 2, "want neighbours (B, K)"),
		op.Need(a.Pool != nil && a.Pool.Rows() > 0 && a.Pool.Width() > 0, "want a pool with rows"),
		op.Need(a.Chunk >= 0, "chunk must not be below 0 (got %d)", a.Chunk),
	))
	fail(op.Need(a.Neighbours.Shape().TotalSize() <= math.MaxInt32,
		"there must be at most %d points, whose numbers are int32 (got %v)", math.MaxInt32, a.Neighbours.Shape()))
	p := &pooled{pool: a.Pool, b: a.Neighbours.Shape()[0], k: a.Neighbours.Shape()[1], keyed: a.Key != nil}
	p.anchors, p.offset = Anchors(p.b, p.k, a.Chunk), a.First*p.k
	in := gorgonia.Nodes{a.Neighbours}
	if p.keyed {
		in = append(in, a.Key)
	}
	parameters, err := p.build(a.Head, o)
	fail(err)
	for _, x := range parameters {
		fail(op.Need(x.Node.Shape().Eq(x.Copy.Shape()), "the copy of %s has shape %v (got %v)", x.Node.Name(),
			x.Node.Shape(), x.Copy.Shape()))
		in = append(in, x.Node)
	}
	return op.Apply(p.op(o), in...)
}

// pooledKind names the op.
const pooledKind = "geometric pool"

// pooled is the op with the computation of a chunk.
type pooled struct {
	pool       batch.Pool
	b, k       int
	anchors    int // of a chunk
	keyed      bool
	offset     int            // number of the first point
	rows, key  *gorgonia.Node // inputs of a chunk: (anchors*K) rows of the pool, (3)
	loss       *gorgonia.Node // and its results
	parameters []Parameter
	grads      gorgonia.Nodes
}

// build makes the computation of a chunk.
func (p *pooled) build(head Head, o Options) ([]Parameter, error) {
	g, n := gorgonia.NewGraph(), p.anchors*p.k
	p.rows = gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(n), gorgonia.WithName("rows of the pool"))
	if p.keyed {
		p.key = gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(3), gorgonia.WithName("dropout key"))
	}
	points := op.Apply(gather(p.pool), p.rows) // (n, D)
	features, parameters := head(points, p.key)
	p.loss = op.Apply(compare(o, p.k, p.b), p.rows, points, features)
	var wrt gorgonia.Nodes
	for _, x := range parameters {
		wrt = append(wrt, x.Copy)
	}
	var err error
	p.parameters = parameters
	p.grads, err = gorgonia.Grad(p.loss, wrt...)
	return parameters, err
}

// op describes the op: the loss, and the gradients of the parameters as auxiliary results.
func (p *pooled) op(opts Options) *op.Op {
	first := 1 // parameter among the operands
	if p.keyed {
		first = 2
	}
	on := oncuda.Pooled{
		Rows: p.rows, Key: p.key, Loss: p.loss, Grads: p.grads, First: first, Points: p.b * p.k,
		Chunk: p.anchors * p.k, Offset: p.offset,
	}
	for _, x := range p.parameters {
		on.Copies = append(on.Copies, x.Copy)
	}
	o := &op.Op{
		Kind: pooledKind,
		Args: fmt.Sprintf("kernel=%s eps=%g scale=%s pool=%dx%d anchors=%d first=%d", opts.Kernel, opts.Epsilon,
			opts.Scale, p.pool.Rows(), p.pool.Width(), p.anchors, p.offset),
		Diff: make([]bool, first+len(p.parameters)),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.ScalarShape(), op.Need(!p.keyed || in[1].Eq(tensor.Shape{2}), "key must have shape (2)")
		},
		Aux: func(in []tensor.Shape) (list []exec.AuxSpec) {
			for _, s := range in[first:] {
				list = append(list, exec.AuxSpec{Shape: s.Clone()})
			}
			return list
		},
		Nested: &exec.Nested{Graph: p.loss.Graph(), Outputs: append(gorgonia.Nodes{p.loss}, p.grads...),
			Runs: blocks(p.b, p.anchors)},
		Host: func(c *exec.Call) (exec.Step, error) {
			r, err := newPooledRun(p, c, first)
			if err != nil {
				return nil, err
			}
			return r.step, nil
		},
		On: on.Step(),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			grads := make(gorgonia.Nodes, first, len(in))
			for i, x := range in[first:] {
				grads = append(grads, arith.MulScalar(op.Take(out, i, x.Shape()), dy))
			}
			return grads
		},
	}
	for i := range p.parameters {
		o.Diff[first+i] = true
	}
	return o
}

// pooledRun is what a step knows of its run.
type pooledRun struct {
	*pooled
	c     *exec.Call
	first int       // parameter among the operands
	bound []float32 // first parameter as it is bound

	chunk, key []int32 // inputs of a chunk
	sums       []sum
}

// sum adds the gradient of a parameter in a chunk to that of the step.
type sum struct {
	chunk exec.Array
	add   func(worker, lo, hi int)
}

func newPooledRun(p *pooled, c *exec.Call, first int) (*pooledRun, error) {
	r := &pooledRun{pooled: p, c: c, first: first, chunk: make([]int32, p.anchors*p.k)}
	if err := c.Inner.SetInput(p.rows, r.chunk); err != nil {
		return nil, err
	}
	if p.keyed {
		r.key = make([]int32, 3)
		if err := c.Inner.SetInput(p.key, r.key); err != nil {
			return nil, err
		}
	}
	for i, g := range p.grads {
		a, err := c.Inner.Value(g)
		if err != nil {
			return nil, err
		}
		r.sums = append(r.sums, sum{a, func(_, lo, hi int) {
			dst := c.Aux[i].F32[lo:hi]
			vector.Add(dst, dst, a.F32[lo:hi])
		}})
	}
	return r, nil
}

// step computes the loss and the gradients, chunk by chunk.
func (r *pooledRun) step() error {
	near := r.c.In[0].I32
	for i, n := range near {
		if n < -1 || int(n) >= r.pool.Rows() {
			return fmt.Errorf("ops: %s: neighbour %d of anchor %d: want a row in [0, %d), or -1 for none (got %d)",
				pooledKind, i%r.k, i/r.k, r.pool.Rows(), n)
		}
	}
	if err := r.bind(); err != nil {
		return err
	}
	for i := range r.sums {
		clear(r.c.Aux[i].F32)
	}
	if r.keyed {
		copy(r.key, r.c.In[1].I32)
	}
	var loss float64
	for at := 0; at < len(near); at += len(r.chunk) {
		n := copy(r.chunk, near[at:])
		for i := range r.chunk[n:] { // a last chunk with fewer anchors
			r.chunk[n+i] = -1
		}
		if r.keyed {
			r.key[2] = int32(r.offset + at)
		}
		if err := r.c.Inner.Run(); err != nil {
			return err
		}
		v, err := r.c.Inner.Scalar(r.loss)
		if err != nil {
			return err
		}
		loss += float64(v)
		for i := range r.sums {
			r.c.Engine.For(r.sums[i].chunk.Len(), op.ElementGrain, r.sums[i].add)
		}
	}
	r.c.Out.F32[0] = float32(loss)
	return nil
}

// bind gives the computation of a chunk the parameters, where they lie elsewhere than in the
// step before.
func (r *pooledRun) bind() error {
	in := r.c.In[r.first:]
	if len(in) == 0 || len(r.bound) > 0 && &r.bound[0] == &in[0].F32[0] {
		return nil
	}
	for i, p := range r.parameters {
		if err := r.c.Inner.SetInput(p.Copy, in[i].F32); err != nil {
			return err
		}
	}
	r.bound = in[0].F32
	return nil
}
