package arith

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// DivScalar returns x / s for x of any shape and a scalar s, such as logits by a
// learned temperature.
func DivScalar(x, s *gorgonia.Node) *gorgonia.Node { return op.Apply(divScalarOp(), x, s) }

// MulScalar returns x * s for x of any shape and a scalar s.
func MulScalar(x, s *gorgonia.Node) *gorgonia.Node { return op.Apply(mulScalarOp(), x, s) }

// MulExp returns x * exp(t) for x of any shape and a scalar t, such as scores by the
// logarithm of a learned scale (Radford et al. 2021).
func MulExp(x, t *gorgonia.Node) *gorgonia.Node { return op.Apply(mulExpOp(), x, t) }

func divScalarOp() *op.Op {
	o := scaling("div scalar", "div_scalar", func(s float32) float32 { return 1 / s })
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		// ds = -sum(dy*x)/s^2 = -sum(dy*out)/s: with the output, x need not be kept.
		ds := op.Apply(scaledDot("div scalar ds", oncuda.Dot(-1, true), func(s float32) float32 {
			return -1 / s
		}), dy, out, in[1])
		return gorgonia.Nodes{DivScalar(dy, in[1]), ds}
	}
	return o
}

func mulExpOp() *op.Op {
	o := scaling("mul exp", "mul_exp", exp32)
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		// dt = sum(dy*x)*exp(t) = sum(dy*out): with the output, x need not be kept.
		dt := op.Apply(scaledDot("mul exp dt", oncuda.Dot(1, false), func(float32) float32 {
			return 1
		}), dy, out, in[1])
		return gorgonia.Nodes{MulExp(dy, in[1]), dt}
	}
	return o
}

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

func mulScalarOp() *op.Op {
	o := scaling("mul scalar", "mul_scalar", func(s float32) float32 { return s })
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		ds := op.Apply(scaledDot("mul scalar ds", oncuda.Dot(1, false), func(float32) float32 {
			return 1
		}), dy, in[0], in[1])
		return gorgonia.Nodes{MulScalar(dy, in[1]), ds}
	}
	return o
}

// scaling returns an op out = factor(s) * x, whose kernel has a name.
func scaling(kind, kernel string, factor func(s float32) float32) *op.Op {
	return &op.Op{
		Kind: kind, Diff: []bool{true, true}, InPlace: []int{0}, On: oncuda.Elements(kernel),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(len(in[1]) == 0, "want a scalar (got %v)", in[1])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Scale(c.Out.F32[lo:hi], factor(c.In[1].F32[0]), c.In[0].F32[lo:hi])
			})
		},
	}
}

// dotBlock is the number of elements of a partial sum: fixed, so that the result
// does not depend on the number of threads.
const dotBlock = 4096

// scaledDot returns an op out = factor(s) * sum(x*y) for x, y and s.
func scaledDot(kind string, on map[string]exec.DeviceStep, factor func(s float32) float32) *op.Op {
	blocks := func(n int) int { return (n + dotBlock - 1) / dotBlock }
	return &op.Op{
		Kind: kind, Diff: []bool{false, false, false}, On: on,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.ScalarShape(),
				op.Need(in[0].TotalSize() == in[1].TotalSize(), "operands must have the same size")
		},
		Scratch: func(in []tensor.Shape, _ int) int { return blocks(in[0].TotalSize()) },
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Len()
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					from, to := b*dotBlock, min((b+1)*dotBlock, n)
					c.Scratch[b] = vector.Dot(c.In[0].F32[from:to], c.In[1].F32[from:to])
				}
			}
			return func() error {
				c.Engine.For(blocks(n), 4, body)
				var sum float64
				for _, v := range c.Scratch[:blocks(n)] {
					sum += float64(v)
				}
				c.Out.F32[0] = float32(float64(factor(c.In[2].F32[0])) * sum)
				return nil
			}, nil
		},
	}
}
