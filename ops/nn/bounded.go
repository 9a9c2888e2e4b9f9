package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Bounded returns an activation of mobile networks of x of any shape, by its name:
//
//	relu6        min(max(x, 0), 6)
//	sigmoid      1/(1 + exp(-x))
//	hardsigmoid  relu6(x + 3)/6
//	hardswish    x relu6(x + 3)/6 (Howard et al. 2019, section 5.2)
//
// Where one has a corner its derivative is that of PyTorch, 0 outside and at the corners of relu6 and hardsigmoid.
func Bounded(x *gorgonia.Node, name string) *gorgonia.Node {
	of, ok := bounded[name]
	if !ok {
		panic(&op.BuildError{Op: "bounded",
			Err: fmt.Errorf("activation must be relu6, sigmoid, hardsigmoid or hardswish (got %q)", name)})
	}
	return op.Apply(&op.Op{
		Kind: "bounded", Args: name, Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				if name == "relu6" {
					vector.Clip(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], 6)
					return
				}
				for i, x := range c.In[0].F32[lo:hi] {
					c.Out.F32[lo+i], _ = of(x)
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(&op.Op{
				Kind: "bounded dx", Args: name, Diff: []bool{false, false}, InPlace: []int{1, 0},
				Shape: func(in []tensor.Shape) (tensor.Shape, error) {
					return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
				},
				Host: func(c *exec.Call) (exec.Step, error) {
					return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
						for i, x := range c.In[0].F32[lo:hi] {
							_, d := of(x)
							c.Out.F32[lo+i] = d * c.In[1].F32[lo+i]
						}
					})
				},
			}, in[0], dy)}
		},
	}, x)
}

// bounded are functions with their derivatives.
var bounded = map[string]func(x float32) (y, dy float32){
	"relu6": func(x float32) (y, dy float32) {
		if x > 0 && x < 6 {
			return x, 1
		}
		return min(max(x, 0), 6), 0
	},
	"sigmoid": func(x float32) (y, dy float32) {
		y = float32(1 / (1 + math.Exp(-float64(x))))
		return y, y * (1 - y)
	},
	"hardsigmoid": func(x float32) (y, dy float32) {
		if x > -3 && x < 3 {
			return (x + 3) / 6, 1. / 6
		}
		return min(max(x+3, 0), 6) / 6, 0
	},
	"hardswish": func(x float32) (y, dy float32) {
		switch {
		case x <= -3:
			return 0, 0
		case x < 3:
			return x * (x + 3) / 6, (2*x + 3) / 6
		}
		return x, 1
	},
}

// ScaleSequences returns the rows of sequences x (B*l, D), each times the row of scale (B, D) of its sequence: the
// excitation of channels of Hu et al. 2018 (equation 4).
func ScaleSequences(x, scale *gorgonia.Node, l int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "scale sequences", Args: fmt.Sprintf("l=%d", l), Diff: []bool{true, true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, s := in[0], in[1]
			return x.Clone(), op.Need(l > 0 && len(x) == 2 && len(s) == 2 && x[0] == s[0]*l && x[1] == s[1],
				"want x (B*%d, D) and scale (B, D) (got %v and %v)", l, x, s)
		},
		Host: scaleSequencesStep(l),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			dx := &op.Op{Kind: "scale sequences dx", Args: fmt.Sprintf("l=%d", l), Diff: []bool{false, false},
				Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
				Host:  scaleSequencesStep(l)}
			return gorgonia.Nodes{op.Apply(dx, dy, in[1]), op.Apply(scaleSequencesGrad(l), dy, in[0])}
		},
	}, x, scale)
}

func scaleSequencesStep(l int) func(c *exec.Call) (exec.Step, error) {
	return func(c *exec.Call) (exec.Step, error) {
		d := c.Out.Dim(1)
		return c.For(c.Out.Dim(0), op.RowGrain(d), func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				vector.Mul(c.Out.F32[r*d:][:d], c.In[0].F32[r*d:][:d], c.In[1].F32[r/l*d:][:d])
			}
		})
	}
}

// scaleSequencesGrad returns dscale (B, D) for dy and x.
func scaleSequencesGrad(l int) *op.Op {
	return &op.Op{
		Kind: "scale sequences dscale", Args: fmt.Sprintf("l=%d", l), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0] / l, in[0][1]}, op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(l*d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					sum := c.Out.F32[b*d:][:d]
					clear(sum)
					for r := b * l; r < (b+1)*l; r++ {
						dy, x := c.In[0].F32[r*d:][:d], c.In[1].F32[r*d:][:d]
						for i := range sum {
							sum[i] += dy[i] * x[i]
						}
					}
				}
			})
		},
	}
}
