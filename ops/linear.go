package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Linear returns x W^T + b for x (R, in), w (out, in) and b (out): (R, out).
// b may be nil.
func Linear(x, w, b *gorgonia.Node) *gorgonia.Node {
	if b == nil {
		return apply(linearOp(false), x, w)
	}
	return apply(linearOp(true), x, w, b)
}

func linearOp(bias bool) *op {
	o := &op{kind: "linear", args: fmt.Sprintf("bias=%t", bias), diff: []bool{true, true}}
	if bias {
		o.diff = append(o.diff, true)
	}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		x, w := in[0], in[1]
		if err := all(
			need(len(x) == 2 && len(w) == 2, "want x (R, in) and w (out, in)"),
		); err != nil {
			return nil, err
		}
		if err := need(x[1] == w[1], "x has %d columns, w %d", x[1], w[1]); err != nil {
			return nil, err
		}
		if bias {
			if err := need(len(in[2]) == 1 && in[2][0] == w[0], "bias must have shape (%d) (got %v)", w[0], in[2]); err != nil {
				return nil, err
			}
		}
		return tensor.Shape{x[0], w[0]}, nil
	}
	o.flops = func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][0]) }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		rows, inner, cols := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(0)
		var addBias func(worker, lo, hi int)
		if bias {
			addBias = func(_, lo, hi int) { kernel.AddRows(c.Out.F32[lo*cols:hi*cols], c.In[2].F32) }
		}
		return func() error {
			c.Engine.Gemm(false, true, rows, cols, inner, 1, c.In[0].F32, inner, c.In[1].F32, inner, 0, c.Out.F32, cols)
			if bias {
				c.Engine.For(rows, grainRows(cols), addBias)
			}
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := gorgonia.Nodes{
			apply(linearGradX(), dy, in[1]),
			apply(linearGradW(), dy, in[0]),
		}
		if bias {
			grads = append(grads, apply(columnSums(), dy))
		}
		return grads
	}
	return o
}

// linearGradX returns dx = dy W for dy (R, out), w (out, in).
func linearGradX() *op {
	return &op{
		kind: "linear dx", diff: []bool{false, false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0], in[1][1]}, need(in[0][1] == in[1][0], "dy and w do not fit")
		},
		flops: func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[1][0]) * int64(in[1][1]) },
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, inner, cols := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(1)
			return func() error {
				c.Engine.Gemm(false, false, rows, cols, inner, 1, c.In[0].F32, inner, c.In[1].F32, cols, 0, c.Out.F32, cols)
				return nil
			}, nil
		},
	}
}

// linearGradW returns dw = dy^T x for dy (R, out), x (R, in).
func linearGradW() *op {
	return &op{
		kind: "linear dw", diff: []bool{false, false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][1], in[1][1]}, need(in[0][0] == in[1][0], "dy and x do not fit")
		},
		flops: func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][1]) },
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, out, in := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(1)
			return func() error {
				c.Engine.Gemm(true, false, out, in, rows, 1, c.In[0].F32, out, c.In[1].F32, in, 0, c.Out.F32, in)
				return nil
			}, nil
		},
	}
}

// columnBlock is the number of rows whose sum is made in one go. It is fixed, so that
// the order of additions does not depend on the threads.
const columnBlock = 128

// columnSums returns the sum over the rows of x (R, D): (D).
func columnSums() *op {
	return &op{
		kind: "column sums", diff: []bool{false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 2, "want a matrix"); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][1]}, nil
		},
		scratch: func(in []tensor.Shape, _ int) int {
			return (in[0][0] + columnBlock - 1) / columnBlock * in[0][1]
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			blocks := (rows + columnBlock - 1) / columnBlock
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					sum := c.Scratch[b*cols : (b+1)*cols]
					kernel.Fill(sum, 0)
					kernel.SumRows(sum, c.In[0].F32[b*columnBlock*cols:min(rows, (b+1)*columnBlock)*cols])
				}
			}
			return func() error {
				c.Engine.For(blocks, 1, body)
				kernel.Fill(c.Out.F32, 0)
				kernel.SumRows(c.Out.F32, c.Scratch)
				return nil
			}, nil
		},
	}
}

// grainRows returns how many rows of the given width are worth a thread.
func grainRows(cols int) int { return max(1, 8192/max(1, cols)) }
