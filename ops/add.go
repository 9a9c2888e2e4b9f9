package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elementGrain is the least number of elements worth a thread in an operation
// that does next to nothing with each.
const elementGrain = 16384

// Add returns x + y for two arrays of one shape.
func Add(x, y *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "add", diff: []bool{true, true}, inPlace: []int{0, 1},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), need(in[0].Eq(in[1]), "want two arrays of one shape")
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				kernel.Add(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			}
			return func() error {
				c.Engine.For(c.Out.Len(), elementGrain, body)
				return nil
			}, nil
		},
		// The gradient of a sum is that of both terms: no op at all.
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes { return gorgonia.Nodes{dy, dy} },
	}, x, y)
}
