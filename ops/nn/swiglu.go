package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SwiGLU returns silu(g) * v for rows [g | v] of x (R, 2H), a gate and the value that it
// lets through: (R, H) (Shazeer 2020, equation 6).
func SwiGLU(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "swiglu", Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && in[0][1]%2 == 0, "want x (R, 2H) (got %v)", in[0]); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0], in[0][1] / 2}, nil
		},
		On: oncuda.Gated("gated"),
		Host: func(c *exec.Call) (exec.Step, error) {
			h := c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(2*h), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x, out := c.In[0].F32[2*r*h:][:2*h], c.Out.F32[r*h:][:h]
					vector.BySiLU.Apply(out, x[:h])
					vector.Mul(out, out, x[h:])
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(swiGLUGrad(), in[0], dy)}
		},
	}, x)
}

// swiGLUGrad returns [dy v silu'(g) | dy silu(g)] for x and dy.
func swiGLUGrad() *op.Op {
	return &op.Op{
		Kind: "swiglu dx", Diff: []bool{false, false}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, dy := in[0], in[1]
			return x.Clone(), op.Need(len(dy) == 2 && dy[0] == x[0] && 2*dy[1] == x[1],
				"dy must have half the columns of x (got %v and %v)", dy, x)
		},
		Scratch: func(in []tensor.Shape, threads int) int { return threads * in[1][1] },
		On:      oncuda.Gated("gated_gradient"),
		Host: func(c *exec.Call) (exec.Step, error) {
			h := c.In[1].Dim(1)
			return c.For(c.In[1].Dim(0), op.RowGrain(4*h), func(worker, lo, hi int) {
				silu := c.Scratch[worker*h:][:h]
				for r := lo; r < hi; r++ {
					x, dy, out := c.In[0].F32[2*r*h:][:2*h], c.In[1].F32[r*h:][:h], c.Out.F32[2*r*h:][:2*h]
					vector.BySiLU.Apply(silu, x[:h])
					vector.BySiLU.Grad(out[:h], x[:h], x[h:]) // may be where x lies
					vector.Mul(out[:h], out[:h], dy)
					vector.Mul(out[h:], silu, dy)
				}
			})
		},
	}
}
