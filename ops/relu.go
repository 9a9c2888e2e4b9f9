package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// reluGrain is the least number of elements worth a thread in a ReLU.
const reluGrain = 16384

// ReLU returns max(x, 0) for x of any shape. Its gradient at 0 is 0, as in PyTorch;
// NaN stays NaN.
func ReLU(x *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "relu", diff: []bool{true}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				y := c.Out.F32[lo:hi]
				for i, v := range c.In[0].F32[lo:hi] {
					y[i] = max(v, 0)
				}
			}
			return func() error {
				c.Engine.For(c.Out.Len(), reluGrain, body)
				return nil
			}, nil
		},
		// With the output, x need not be kept.
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(reluGrad(), out, dy)}
		},
	}, x)
}

// reluGrad returns dx for the output y and dy.
func reluGrad() *op {
	return &op{
		kind: "relu dx", diff: []bool{false, false}, inPlace: []int{1, 0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) {
				dx, dy := c.Out.F32[lo:hi], c.In[1].F32[lo:hi]
				for i, v := range c.In[0].F32[lo:hi] {
					if v > 0 {
						dx[i] = dy[i]
					} else {
						dx[i] = 0
					}
				}
			}
			return func() error {
				c.Engine.For(c.Out.Len(), reluGrain, body)
				return nil
			}, nil
		},
	}
}
