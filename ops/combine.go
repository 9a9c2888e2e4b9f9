package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Combine returns sum_k weights_k xs_k for arrays of one shape, with gradients to all:
// several scores of the same pairs, say.
func Combine(weights []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	if len(weights) != len(xs) || len(xs) == 0 {
		panic(&BuildError{Op: "combine", Err: fmt.Errorf("want a weight for each of at least one array (got %d weights and %d arrays)", len(weights), len(xs))})
	}
	o := &op{kind: "combine", args: fmt.Sprintf("weights=%g", weights), diff: make([]bool, len(xs)), inPlace: []int{0}}
	for i := range o.diff {
		o.diff[i] = true
	}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		for i, s := range in {
			if err := need(s.Eq(in[0]), "want arrays of one shape (array %d has %v)", i, s); err != nil {
				return nil, err
			}
		}
		return in[0].Clone(), nil
	}
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		body := func(_, lo, hi int) {
			out := c.Out.F32[lo:hi]
			if len(weights) == 1 {
				kernel.Scale(out, weights[0], c.In[0].F32[lo:hi])
				return
			}
			kernel.Axpby(out, weights[0], c.In[0].F32[lo:hi], weights[1], c.In[1].F32[lo:hi])
			for k := 2; k < len(weights); k++ {
				kernel.Axpy(out, weights[k], c.In[k].F32[lo:hi])
			}
		}
		return func() error {
			c.Engine.For(c.Out.Len(), elementGrain, body)
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		for i, w := range weights {
			grads[i] = dy
			if w != 1 {
				grads[i] = times(w, dy)
			}
		}
		return grads
	}
	return apply(o, xs...)
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
