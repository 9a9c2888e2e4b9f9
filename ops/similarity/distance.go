package similarity

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Distance is a way to measure how far two rows of C channels are from each other.
type Distance struct {
	// Kind is "l2", |f - x|, or "angle", the distance of the oblique manifold,
	//
	//	sqrt(sum_k arccos^2(f_k . x_k))
	//
	// over the groups of C/m channels that f_k and x_k are, each a unit vector (clip-mtob,
	// table 1; on one sphere the angle). Cosines are limited to
	// [-1+1e-6, 1-1e-6], since the gradient is infinite at the ends; beyond it is 0.
	Kind    string
	Spheres int // m, a divisor of C; of no meaning to l2
}

// NegativeDistance returns the negative distances of rows f (B, C) from the rows keys
// (B2, C) of a batch and queue (Q, C), in the layout of Similarity: (B, B2+Q), of which
// the first cols exist. The gradient goes to f and keys. It is 0 for a pair of equal
// vectors, where a distance has none; rows of l2 must be below 1e18 in size.
func NegativeDistance(d Distance, f, keys, queue, cols *gorgonia.Node) *gorgonia.Node {
	s, in := newSimilarity(f, keys, queue, cols)
	x := &distance{Distance: d, layout: batchLayout{s}}
	return op.Apply(x.forward("negative distance", in, 1), in...)
}

// PoolNegativeDistance returns the negative distances of rows f (B, C) from the rows of a
// pool: (B, N), column j for row j, 0 for those that do not exist. The gradient goes to f
// alone.
func PoolNegativeDistance(d Distance, f *gorgonia.Node, p pool.Pool) *gorgonia.Node {
	at, in := p.Operands(gorgonia.Nodes{f})
	x := &distance{Distance: d, layout: poolLayout{at}}
	return op.Apply(x.forward("pool negative distance", in, -1), in...)
}

// PoolDistanceGradient returns the gradient (B, C) of f in PoolNegativeDistance for the
// gradient dy (B, N) of its scores.
func PoolDistanceGradient(d Distance, f, dy *gorgonia.Node, p pool.Pool) *gorgonia.Node {
	at, in := p.Operands(gorgonia.Nodes{f})
	x := &distance{Distance: d, layout: poolLayout{at}}
	scores := op.Apply(x.forward("pool negative distance", in, -1), in...)
	return op.Apply(x.backward("pool negative distance df", len(in), 0), append(in, scores, dy)...)
}

// columnRun is columns [col, col+n) of the scores of a step: rows [row, row+n) of operand
// in.
type columnRun struct{ operand, col, row, n int }

// columnLayout says which rows stand for the columns of scores.
type columnLayout interface {
	args() string
	// shape returns the shape (B, columns) for operands of which the first is f.
	shape(in []tensor.Shape) (tensor.Shape, error)
	// runs appends the columns that exist to dst in their order.
	runs(c *exec.Call, s *pool.State, dst []columnRun) ([]columnRun, error)
	// onDevice returns the operands that say so, for steps that cannot read them.
	onDevice() oncuda.Columns
}

// batchLayout is that of Similarity: the batch, then the queue.
type batchLayout struct{ *similarity }

func (l batchLayout) runs(c *exec.Call, _ *pool.State, dst []columnRun) ([]columnRun, error) {
	keys, queue := c.In[1].Dim(0), 0
	if l.queue >= 0 {
		queue = c.In[l.queue].Dim(0)
	}
	n, q, err := l.columns(c, keys, queue)
	if n > 0 {
		dst = append(dst, columnRun{1, 0, 0, n})
	}
	if q > 0 {
		dst = append(dst, columnRun{l.queue, keys, 0, q})
	}
	return dst, err
}

// poolLayout is that of pool.Similarity.
type poolLayout struct{ pool.Operands }

func (l batchLayout) onDevice() oncuda.Columns {
	return oncuda.Columns{Keys: 1, Queue: l.queue, Pointer: -1, Cols: l.cols}
}

func (l poolLayout) onDevice() oncuda.Columns { return oncuda.Columns(l.Operands) }

func (l poolLayout) args() string { return l.Args() }

func (l poolLayout) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2, "want f (B, C)"); err != nil {
		return nil, err
	}
	return tensor.Shape{in[0][0], l.Rows(in)}, l.Check(in, in[0][1])
}

func (l poolLayout) runs(c *exec.Call, s *pool.State, dst []columnRun) ([]columnRun, error) {
	if err := s.Read(c, l.Operands); err != nil {
		return dst, err
	}
	for _, g := range s.Segments {
		operand := l.Queue
		if g.Batch {
			operand = l.Keys
		}
		dst = append(dst, columnRun{operand, g.Col, g.Row, g.N})
	}
	return dst, nil
}

// distance describes the ops.
type distance struct {
	Distance
	layout columnLayout
}

// onCUDA is the distance as its steps for the CUDA device know it.
func (x *distance) onCUDA() oncuda.Distance {
	return oncuda.Distance{L2: x.Kind == "l2", Spheres: x.Spheres, Columns: x.layout.onDevice()}
}

func (x *distance) args() string {
	return fmt.Sprintf("%s spheres=%d %s", x.Kind, x.Spheres, x.layout.args())
}

func (x *distance) shape(in []tensor.Shape) (tensor.Shape, error) {
	out, err := x.layout.shape(in)
	if err != nil {
		return nil, err
	}
	return out, op.All(
		op.Need(x.Kind == "l2" || x.Kind == "angle", "kind must be l2 or angle (got %q)", x.Kind),
		op.Need(x.Kind == "l2" || x.Spheres > 0 && in[0][1]%x.Spheres == 0,
			"spheres must divide the %d channels (got %d)", in[0][1], x.Spheres),
	)
}

// flops counts the products.
func (x *distance) flops(in []tensor.Shape) int64 {
	out, err := x.layout.shape(in)
	if err != nil {
		return 0
	}
	return 2 * int64(out[0]) * int64(out[1]) * int64(in[0][1])
}

// forward is the op of the scores. keys is the operand besides f that has a gradient, -1
// for none.
func (x *distance) forward(kind string, in gorgonia.Nodes, keys int) *op.Op {
	o := &op.Op{Kind: kind, Args: x.args(), Shape: x.shape, FLOPs: x.flops, Diff: make([]bool, len(in))}
	o.Diff[0] = true
	if keys >= 0 {
		o.Diff[keys] = true
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * x.floats(in[0][1]) }
	o.On = x.onCUDA().Forward()
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r := x.newRun(c, c.In[0].Dim(1))
		rows, total := c.Out.Dim(0), c.Out.Dim(1)
		body := func(worker, lo, hi int) {
			w := r.worker(worker)
			for i := lo * distanceRows; i < min(hi*distanceRows, rows); i += distanceRows {
				n := min(distanceRows, rows-i)
				end := 0
				for _, g := range r.columns {
					for t := 0; t < g.n; t += distanceColumns {
						r.block(w, c.In[0].F32, i, n, c.In[g.operand].F32, g.row+t, min(distanceColumns, g.n-t),
							c.Out.F32[i*total+g.col+t:], total)
					}
					end = g.col + g.n
				}
				for k := i; k < i+n; k++ {
					clear(c.Out.F32[k*total+end : (k+1)*total])
				}
			}
		}
		return func() error {
			if err := r.begin(); err != nil {
				return err
			}
			c.Engine.For(distanceBlocks(rows), 1, body)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		operands := append(append(gorgonia.Nodes{}, in...), out, dy)
		grads := make(gorgonia.Nodes, len(in))
		grads[0] = op.Apply(x.backward(kind+" df", len(in), 0), operands...)
		if keys >= 0 {
			grads[keys] = op.Apply(x.backward(kind+" dkeys", len(in), keys), operands...)
		}
		return grads
	}
	return o
}

// backward is the gradient for operand of, f or the keys; operands are those of the
// forward op, its output and the gradient of that.
func (x *distance) backward(kind string, operands, of int) *op.Op {
	out, dy := operands, operands+1
	o := &op.Op{Kind: kind, Args: fmt.Sprintf("%s of=%d", x.args(), of), Diff: make([]bool, operands+2)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		s, err := x.shape(in[:operands])
		if err != nil {
			return nil, err
		}
		return in[of].Clone(), op.Need(in[out].Eq(s) && in[dy].Eq(s),
			"output and dy must have shape %v (got %v and %v)", s, in[out], in[dy])
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * x.flops(in[:operands]) }
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * x.floats(in[0][1]) }
	o.On = x.onCUDA().Backward(operands, of)
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r := x.newRun(c, c.In[0].Dim(1))
		r.total = c.In[out].Dim(1)
		b := c.In[0].Dim(0)
		forRows := func(worker, lo, hi int) {
			w := r.worker(worker)
			lo, hi = lo*distanceRows, min(hi*distanceRows, b)
			clear(c.Out.F32[lo*r.width : hi*r.width])
			for i := lo; i < hi; i += distanceRows {
				for _, g := range r.columns {
					for t := 0; t < g.n; t += distanceColumns {
						r.gradient(w, false, c.In[0].F32, i, min(distanceRows, hi-i), c.In[g.operand].F32, g.row+t,
							min(distanceColumns, g.n-t), g.col+t)
					}
				}
			}
		}
		forKeys := func(worker, lo, hi int) {
			w := r.worker(worker)
			lo, hi = lo*distanceRows, min(hi*distanceRows, c.Out.Dim(0))
			clear(c.Out.F32[lo*r.width : hi*r.width])
			for i := lo; i < hi; i += distanceRows {
				n := min(distanceRows, min(hi, r.existing(of))-i) // keys are the first columns
				for t := 0; n > 0 && t < b; t += distanceColumns {
					r.gradient(w, true, c.In[of].F32, i, n, c.In[0].F32, t, min(distanceColumns, b-t), t)
				}
			}
		}
		return func() error {
			if err := r.begin(); err != nil {
				return err
			}
			r.scores, r.dy = c.In[out].F32, c.In[dy].F32
			if of == 0 {
				c.Engine.For(distanceBlocks(b), 1, forRows)
			} else {
				c.Engine.For(distanceBlocks(c.Out.Dim(0)), 1, forKeys)
			}
			return nil
		}, nil
	}
	return o
}
