package similarity

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// FoldColumns returns rows x (R, E) with W applied to width of their columns, those that begin at from: a learned
// metric in attention, W k in the place of the keys k among queries, keys and values. W is a diagonal (d), blocks (N,
// d, d) or one matrix (d, d); where it has fewer channels than width, the channels of a head, it is that of every head.
// With the identity it returns the bits of x. Products are in float32 whatever the engine's precision.
func FoldColumns(x, w *gorgonia.Node, from, width int) *gorgonia.Node {
	f := folding{from, width}
	return op.Apply(f.op("fold columns", false, func(in gorgonia.Nodes, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{op.Apply(f.op("fold columns dx", true, nil), dy, in[1]),
			op.Apply(f.weights(in[1].Shape()), dy, in[0])}
	}), x, w)
}

// folding is the columns that W is applied to.
type folding struct{ from, width int }

func (f folding) args() string { return fmt.Sprintf("from=%d width=%d", f.from, f.width) }

// columnBlocks returns the number and the size of the blocks of w, of size 1 of a diagonal.
func columnBlocks(w tensor.Shape) (n, d int) {
	if len(w) == 1 {
		return w[0], 1
	}
	return metricBlocks(w)
}

func (f folding) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, w := in[0], in[1]
	if err := op.All(
		op.Need(len(x) == 2 && f.from >= 0 && f.width > 0 && f.from+f.width <= x[1],
			"want x (R, E) with columns [%d, %d)", f.from, f.from+f.width),
		op.Need(len(w) == 1 || len(w) == 2 && w[0] == w[1] || len(w) == 3 && w[1] == w[2],
			"want a diagonal (d), square blocks (N, d, d) or one matrix (d, d) (got %v)", w),
	); err != nil {
		return nil, err
	}
	n, d := columnBlocks(w)
	return x.Clone(), op.Need(f.width%(n*d) == 0, "%d blocks of %d do not make up the heads of %d columns", n, d,
		f.width)
}

func (f folding) flops(in []tensor.Shape) int64 {
	_, d := columnBlocks(in[1])
	return 2 * int64(in[0][0]) * int64(f.width) * int64(d)
}

// foldRows is how many rows a thread works on at a time.
const foldRows = 64

// op is the step of x with W x, or with transposed W^T x, in the columns.
func (f folding) op(kind string, transposed bool,
	grad func(in gorgonia.Nodes, dy *gorgonia.Node) gorgonia.Nodes) *op.Op {
	o := &op.Op{Kind: kind, Args: f.args(), Diff: []bool{grad != nil, grad != nil}, Shape: f.shape, FLOPs: f.flops}
	o.On = oncuda.FoldColumns(f.from, f.width, transposed)
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
		n, d := columnBlocks(c.In[1].Shape)
		return c.For((rows+foldRows-1)/foldRows, 1, func(_, lo, hi int) {
			lo, hi = lo*foldRows, min(hi*foldRows, rows)
			x, w, out := c.In[0].F32, c.In[1].F32, c.Out.F32
			copy(out[lo*cols:hi*cols], x[lo*cols:hi*cols])
			for at := f.from; at < f.from+f.width; at += n * d {
				if d == 1 {
					for r := lo; r < hi; r++ {
						vector.Mul(out[r*cols+at:][:n], x[r*cols+at:][:n], w)
					}
					continue
				}
				for b := range n {
					k := lo*cols + at + b*d
					c.Engine.GemmSerial(false, !transposed, hi-lo, d, d, 1, x[k:], cols, w[b*d*d:], d, 0, out[k:], cols)
				}
			}
		})
	}
	if grad != nil {
		o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes { return grad(in, dy) }
	}
	return o
}

// weights returns dW for dy and x (R, E): dW_ij = sum_r dy_ri x_rj, over all heads that have the weights.
func (f folding) weights(w tensor.Shape) *op.Op {
	n, d := columnBlocks(w)
	return &op.Op{
		Kind: "fold columns dw", Args: fmt.Sprintf("%s w=%v", f.args(), w), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return w.Clone(), op.Need(in[0].Eq(in[1]), "dy and x must have one shape")
		},
		FLOPs: func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(f.width) * int64(d) },
		On:    oncuda.FoldColumnsWeights(f.from, f.width),
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			diagonal := func(_, lo, hi int) {
				dw := c.Out.F32[lo:hi]
				clear(dw)
				for r := range rows {
					for at := r*cols + f.from; at < r*cols+f.from+f.width; at += n {
						dy, x := c.In[0].F32[at+lo:at+hi], c.In[1].F32[at+lo:at+hi]
						for i, v := range dy {
							dw[i] += v * x[i]
						}
					}
				}
			}
			blocks := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					for at := f.from; at < f.from+f.width; at += n * d {
						k, beta := at+b*d, min(1, float32(at-f.from)) // the first head begins the sum
						c.Engine.GemmSerial(true, false, d, d, rows, 1, c.In[0].F32[k:], cols, c.In[1].F32[k:], cols,
							beta, c.Out.F32[b*d*d:], d)
					}
				}
			}
			return func() error {
				if d == 1 {
					c.Engine.For(n, max(16, op.ElementGrain/max(1, rows*f.width/n)), diagonal)
				} else {
					c.Engine.For(n, blockGrain(rows, d), blocks)
				}
				return nil
			}, nil
		},
	}
}
