package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// arccosGrain is the least number of elements worth a thread in an arc cosine.
const arccosGrain = 4096

// ArcCos returns the angles in radians whose cosines are x, of any shape. Cosines are
// first limited to [-1+1e-6, 1-1e-6], since the gradient is infinite at the ends;
// beyond these limits, where the result is constant, it is 0.
func ArcCos(x *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "arccos", diff: []bool{true}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) { kernel.Acos(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], kernel.AcosLimit) }
			return func() error {
				c.Engine.For(c.Out.Len(), arccosGrain, body)
				return nil
			}, nil
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(arccosGrad(), in[0], dy)}
		},
	}, x)
}

// arccosGrad returns dx = -dy/sqrt(1-x^2) for x and dy, 0 beyond the limits.
func arccosGrad() *op {
	return &op{
		kind: "arccos dx", diff: []bool{false, false}, inPlace: []int{1, 0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				kernel.AcosGrad(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi], kernel.AcosLimit)
			}
			return func() error {
				c.Engine.For(c.Out.Len(), arccosGrain, body)
				return nil
			}, nil
		},
	}
}
