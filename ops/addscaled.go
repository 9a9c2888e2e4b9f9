package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// AddScaled returns x + s*y for x and y of one shape and a scalar s. The gradient goes
// to x alone: y is a constant that shifts it.
func AddScaled(x, y, s *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "add scaled", diff: []bool{true, false, false}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), all(
				need(in[0].Eq(in[1]), "want two arrays of one shape"),
				need(len(in[2]) == 0, "want a scalar (got %v)", in[2]))
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				kernel.Axpby(c.Out.F32[lo:hi], 1, c.In[0].F32[lo:hi], c.In[2].F32[0], c.In[1].F32[lo:hi])
			}
			return func() error {
				c.Engine.For(c.Out.Len(), elementGrain, body)
				return nil
			}, nil
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{dy, nil, nil} },
	}, x, y, s)
}
