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

// Sum returns the sum of all elements of x, of any shape: a scalar.
func Sum(x *gorgonia.Node) *gorgonia.Node { return op.Apply(reduction("sum", false), x) }

// Mean returns the mean of all elements of x, of any shape: a scalar.
func Mean(x *gorgonia.Node) *gorgonia.Node { return op.Apply(reduction("mean", true), x) }

// sumBlock is the number of elements of a partial sum: fixed, so that the result
// does not depend on the number of threads.
const sumBlock = 4096

func reduction(kind string, mean bool) *op.Op {
	blocks := func(n int) int { return (n + sumBlock - 1) / sumBlock }
	factor := func(s tensor.Shape) float64 {
		if mean {
			return 1 / float64(s.TotalSize())
		}
		return 1
	}
	return &op.Op{
		Kind: kind, Diff: []bool{true},
		On:      oncuda.Sum(mean),
		Shape:   func([]tensor.Shape) (tensor.Shape, error) { return tensor.ScalarShape(), nil },
		Scratch: func(in []tensor.Shape, _ int) int { return blocks(in[0].TotalSize()) },
		Host: func(c *exec.Call) (exec.Step, error) {
			n, f := c.In[0].Len(), factor(c.In[0].Shape)
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					c.Scratch[b] = vector.Sum(c.In[0].F32[b*sumBlock : min((b+1)*sumBlock, n)])
				}
			}
			return func() error {
				c.Engine.For(blocks(n), 8, body)
				var sum float64
				for _, v := range c.Scratch[:blocks(n)] {
					sum += float64(v)
				}
				c.Out.F32[0] = float32(f * sum)
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			s := in[0].Shape()
			return gorgonia.Nodes{op.Apply(spread(s, float32(factor(s))), dy)}
		},
	}
}

// spread returns an array of the given shape full of factor*dy for a scalar dy.
func spread(shape tensor.Shape, factor float32) *op.Op {
	return &op.Op{
		Kind: "spread", Args: fmt.Sprintf("shape=%v factor=%g", shape, factor), Diff: []bool{false},
		On: oncuda.Elements("spread", factor),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return shape.Clone(), op.Need(len(in[0]) == 0, "want a scalar")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Fill(c.Out.F32[lo:hi], factor*c.In[0].F32[0])
			})
		},
	}
}

// WeightedSum returns the sum of weights[i]*xs[i] over scalars xs, such as the parts
// of a loss: a scalar.
func WeightedSum(weights []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	weights = append([]float32(nil), weights...)
	o := &op.Op{Kind: "weighted sum", Args: fmt.Sprintf("weights=%v", weights), Diff: make([]bool, len(xs)),
		On: oncuda.Combine(weights, true)}
	for i := range o.Diff {
		o.Diff[i] = true
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in) > 0 && len(in) == len(weights),
			"want a weight for each operand (got %d weights, %d operands)", len(weights), len(in)); err != nil {
			return nil, err
		}
		for i, s := range in {
			if err := op.Need(len(s) == 0, "operand %d must be a scalar (got %v)", i, s); err != nil {
				return nil, err
			}
		}
		return tensor.ScalarShape(), nil
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		return func() error {
			var sum float64
			for i, w := range weights {
				sum += float64(w) * float64(c.In[i].F32[0])
			}
			c.Out.F32[0] = float32(sum)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		for i, w := range weights {
			grads[i] = op.Apply(spread(tensor.ScalarShape(), w), dy)
		}
		return grads
	}
	return op.Apply(o, xs...)
}
