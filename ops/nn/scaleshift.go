package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ScaleShift returns x (R, n) with column c times scale[from+c], plus shift[from+c], for scale and
// shift (D) with D at least from+n: scaling and shifting of features (SSF, Lian et al. 2022, equation
// 3), of all columns of a layer or of a part that LinearPart gives. With scales of 1 and shifts of 0
// the values are those of x.
func ScaleShift(x, scale, shift *gorgonia.Node, from int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "scale shift", Args: fmt.Sprintf("from=%d", from), Diff: []bool{true, true, true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && len(in[1]) == 1,
				"want x (R, n), and scale and shift (D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), op.All(
				op.WantVector(in[2], "shift", in[1][0]),
				op.Need(from >= 0 && from+in[0][1] <= in[1][0], "%d columns from %d on are not in %d", in[0][1], from,
					in[1][0]),
			)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols := c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(cols), func(_, lo, hi int) {
				scale, shift := c.In[1].F32[from:from+cols], c.In[2].F32[from:from+cols]
				for r := lo; r < hi; r++ {
					row := c.Out.F32[r*cols:][:cols]
					vector.Mul(row, c.In[0].F32[r*cols:][:cols], scale)
					vector.Add(row, row, shift)
				}
			})
		},
		On: oncuda.ScaleRows(from, true),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			total := in[1].Shape()[0]
			return gorgonia.Nodes{
				op.Apply(scaleShiftGrad(from), dy, in[1]),
				op.Apply(columnSums(from, total), op.Apply(scaleColumnsGrad(), in[0], dy)),
				op.Apply(columnSums(from, total), dy),
			}
		},
	}, x, scale, shift)
}

// scaleShiftGrad returns dx for dy and the scale.
func scaleShiftGrad(from int) *op.Op {
	return &op.Op{
		Kind: "scale shift dx", Args: fmt.Sprintf("from=%d", from), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host:  scaleRows(from),
		On:    oncuda.ScaleRows(from, false),
	}
}
