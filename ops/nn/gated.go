package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gated returns act(g) * v for rows [g | v] of x (R, 2H), with an activation by its name, one of LinearActivated:
// (R, H) (Shazeer 2020, section 2). With silu it is SwiGLU.
func Gated(x *gorgonia.Node, name string) *gorgonia.Node {
	of := activation(name)
	if of == vector.BySiLU {
		return SwiGLU(x)
	}
	return op.Apply(&op.Op{
		Kind: "gated", Args: of.String(), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && in[0][1]%2 == 0, "want x (R, 2H) (got %v)", in[0]); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][0], in[0][1] / 2}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			h := c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(2*h), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x, out := c.In[0].F32[2*r*h:][:2*h], c.Out.F32[r*h:][:h]
					of.Apply(out, x[:h])
					vector.Mul(out, out, x[h:])
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(gatedGrad(of), in[0], dy)}
		},
	}, x)
}

// gatedGrad returns [dy v act'(g) | dy act(g)] for x and dy.
func gatedGrad(of vector.Activation) *op.Op {
	return &op.Op{
		Kind: "gated dx", Args: of.String(), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, dy := in[0], in[1]
			return x.Clone(), op.Need(len(dy) == 2 && dy[0] == x[0] && 2*dy[1] == x[1],
				"dy must have half the columns of x (got %v and %v)", dy, x)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			h := c.In[1].Dim(1)
			return c.For(c.In[1].Dim(0), op.RowGrain(4*h), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x, dy, out := c.In[0].F32[2*r*h:][:2*h], c.In[1].F32[r*h:][:h], c.Out.F32[2*r*h:][:2*h]
					vector.Mul(out[h:], x[h:], dy)
					of.Grad(out[:h], x[:h], out[h:])
					of.Apply(out[h:], x[:h])
					vector.Mul(out[h:], out[h:], dy)
				}
			})
		},
	}
}
