package conv

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/conv/internal/oncuda"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Folded returns nn.BatchNorm of Conv(a.X, w, g) by the given statistics a.Mean and a.Variance, with a.Add and a.ReLU,
// in one pass over the result, with the bits of the two ops: (B*Ho*Wo, Cout). No gradient flows through it: it is for
// inference and frozen layers. Lengths are not taken.
func Folded(w *gorgonia.Node, g Geometry, a nn.BatchNormArgs) *gorgonia.Node {
	in := gorgonia.Nodes{a.X, w, a.Gamma, a.Beta, a.Mean, a.Variance}
	if a.Add != nil {
		in = append(in, a.Add)
	}
	return op.Apply(folded(g, a.Eps, a.ReLU, a.Lengths != nil, len(in)), in...)
}

func folded(g Geometry, eps float32, relu, padded bool, n int) *op.Op {
	return &op.Op{
		Kind: "conv folded", Args: fmt.Sprintf("%v eps=%g relu=%t", g, eps, relu), Diff: make([]bool, n),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			y, err := g.result(in[0], in[1])
			if err != nil {
				return nil, err
			}
			errs := []error{op.Need(!padded, "lengths are not taken: all places count"),
				op.Need(eps >= 0, "eps must not be negative (got %g)", eps)}
			for i, name := range []string{"gamma", "beta", "mean", "variance"} {
				errs = append(errs, op.WantVector(in[2+i], name, y[1]))
			}
			if n == 7 {
				errs = append(errs, op.WantShape(in, 6, "what is added", y...))
			}
			return y, op.All(errs...)
		},
		Scratch: func(in []tensor.Shape, threads int) int { return in[1][0] + g.scratch(in[0], in[1], threads) },
		FLOPs:   func(in []tensor.Shape) int64 { return g.flops(in[0], in[1]) },
		Host: func(c *exec.Call) (exec.Step, error) {
			k, err := g.convolution(c, c.In[0].Shape, c.In[1].Shape)
			d := c.In[1].Dim(0)
			after := convolve.After{Columns: &vector.Columns{Scale: c.Scratch[:d], ReLU: relu}}
			return func() error {
				after.Columns.Mean, after.Columns.Shift = c.In[4].F32, c.In[3].F32
				for j, v := range c.In[5].F32 {
					after.Columns.Scale[j] = c.In[2].F32[j] * float32(1/math.Sqrt(float64(v)+float64(eps)))
				}
				if n == 7 {
					after.Add = c.In[6].F32
				}
				k.Forward(c.Out.F32, c.In[0].F32, c.In[1].F32, after, c.Scratch[d:])
				return nil
			}, err
		},
		On: oncuda.Folded(g.of, eps, relu, n == 7),
	}
}
