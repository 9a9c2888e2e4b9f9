package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// geluGrain is the least number of elements worth a thread in a GELU.
const geluGrain = 4096

// GELU returns x * Phi(x) with the distribution function Phi of the standard
// normal distribution, the exact form (Hendrycks and Gimpel 2016, section 2), for x
// of any shape.
func GELU(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "gelu", Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(vector.ByGELU),
		Host: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) { vector.GELU(c.Out.F32[lo:hi], c.In[0].F32[lo:hi]) }
			return func() error {
				c.Engine.For(c.Out.Len(), geluGrain, body)
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(geluGrad(), in[0], dy)}
		},
	}, x)
}

// geluGrad returns dx for x and dy.
func geluGrad() *op.Op {
	return &op.Op{
		Kind: "gelu dx", Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		On: oncuda.ActivationGrad(vector.ByGELU),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), geluGrain, func(_, lo, hi int) {
				vector.GELUGrad(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			})
		},
	}
}
