package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ScaleColumns returns x (R, D) with column d times scale[d], for scale (D): the layer scale
// of Touvron et al. 2021 (equation 2).
func ScaleColumns(x, scale *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "scale columns", Diff: []bool{true, true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), op.WantVector(in[1], "scale", in[0][1])
		},
		Host: scaleRows(0),
		On:   oncuda.ScaleRows(0, false),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			back := op.Apply(scaleColumnsGrad(), in[0], dy)
			return gorgonia.Nodes{op.Apply(scaleShiftGrad(0), dy, in[1]), op.Apply(columnSums(0, in[1].Shape()[0]), back)}
		},
	}, x, scale)
}

// scaleColumnsGrad returns x*dy, whose column sums are the gradient of the scale.
func scaleColumnsGrad() *op.Op {
	return &op.Op{
		Kind: "scale columns dscale", Diff: []bool{false, false}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				vector.Mul(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			})
		},
		On: oncuda.Multiply(),
	}
}

// scaleRows multiplies the rows of operand 0 by operand 1, from element from on.
func scaleRows(from int) func(c *exec.Call) (exec.Step, error) {
	return func(c *exec.Call) (exec.Step, error) {
		cols := c.Out.Dim(1)
		return c.For(c.Out.Dim(0), op.RowGrain(cols), func(_, lo, hi int) {
			scale := c.In[1].F32[from : from+cols]
			for r := lo; r < hi; r++ {
				vector.Mul(c.Out.F32[r*cols:][:cols], c.In[0].F32[r*cols:][:cols], scale)
			}
		})
	}
}
