package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Blend returns a*x + b*y for x and y of one shape, with gradients to both: geodesic and
// cosine scores mixed, say.
func Blend(a, b float32, x, y *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "blend", args: fmt.Sprintf("a=%g b=%g", a, b), diff: []bool{true, true}, inPlace: []int{0, 1},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), need(in[0].Eq(in[1]), "want two arrays of one shape")
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				kernel.Axpby(c.Out.F32[lo:hi], a, c.In[0].F32[lo:hi], b, c.In[1].F32[lo:hi])
			}
			return func() error {
				c.Engine.For(c.Out.Len(), elementGrain, body)
				return nil
			}, nil
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{times(a, dy), times(b, dy)}
		},
	}, x, y)
}

// times returns a*x for a constant a.
func times(a float32, x *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "times", args: fmt.Sprintf("a=%g", a), diff: []bool{false}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) { kernel.Scale(c.Out.F32[lo:hi], a, c.In[0].F32[lo:hi]) }
			return func() error {
				c.Engine.For(c.Out.Len(), scaleGrain, body)
				return nil
			}, nil
		},
	}, x)
}
