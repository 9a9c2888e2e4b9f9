package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Tanh returns the hyperbolic tangent of x of any shape, to 1e-7.
func Tanh(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "tanh", Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(oncuda.Tanh),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				y := c.Out.F32[lo:hi]
				vector.Scale(y, 2, c.In[0].F32[lo:hi])
				sigmoids(0, len(y), y, func(i int, _, s float32) { y[i] = 2*s - 1 })
			})
		},
		// With the output, x need not be kept.
		Grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(tanhGrad(), out, dy)}
		},
	}, x)
}

// tanhGrad returns dx = (1 - y^2) dy for the output y and dy.
func tanhGrad() *op.Op {
	return &op.Op{
		Kind: "tanh dx", Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		On: oncuda.ActivationGrad(oncuda.Tanh),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				dx, dy := c.Out.F32[lo:hi], c.In[1].F32[lo:hi]
				for i, y := range c.In[0].F32[lo:hi] {
					dx[i] = (1 - y*y) * dy[i]
				}
			})
		},
	}
}
