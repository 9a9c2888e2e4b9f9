package arith

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Combine returns sum_k weights_k xs_k for arrays of one shape, with gradients to all:
// several scores of the same pairs, say.
func Combine(weights []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	if len(weights) != len(xs) || len(xs) == 0 {
		panic(&op.BuildError{Op: "combine",
			Err: fmt.Errorf("want a weight for each of at least one array (got %d weights and %d arrays)",
				len(weights), len(xs))})
	}
	o := &op.Op{Kind: "combine", Args: fmt.Sprintf("weights=%g", weights), Diff: make([]bool, len(xs)),
		InPlace: []int{0}, On: oncuda.Combine(weights, false)}
	for i := range o.Diff {
		o.Diff[i] = true
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		for i, s := range in {
			if err := op.Need(s.Eq(in[0]), "want arrays of one shape (array %d has %v)", i, s); err != nil {
				return nil, err
			}
		}
		return in[0].Clone(), nil
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
			out := c.Out.F32[lo:hi]
			if len(weights) == 1 {
				vector.Scale(out, weights[0], c.In[0].F32[lo:hi])
				return
			}
			vector.Axpby(out, weights[0], c.In[0].F32[lo:hi], weights[1], c.In[1].F32[lo:hi])
			for k := 2; k < len(weights); k++ {
				vector.Axpy(out, weights[k], c.In[k].F32[lo:hi])
			}
		})
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		for i, w := range weights {
			grads[i] = dy
			if w != 1 {
				grads[i] = Times(w, dy)
			}
		}
		return grads
	}
	return op.Apply(o, xs...)
}

// Times returns a*x for a constant a. It is for gradients: none flows back through it. In a forward graph Combine does
// the same.
func Times(a float32, x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "times", Args: fmt.Sprintf("a=%g", a), Diff: []bool{false}, InPlace: []int{0},
		On:    oncuda.Elements("scale", a),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Scale(c.Out.F32[lo:hi], a, c.In[0].F32[lo:hi])
			})
		},
	}, x)
}
