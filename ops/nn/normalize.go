package nn

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// L2Normalize divides every row of x (R, D) by max(|row|, eps), as torch's
// F.normalize does.
func L2Normalize(x *gorgonia.Node, eps float32) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "l2 normalize", Args: fmt.Sprintf("eps=%g", eps), Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.All(
				op.Need(len(in[0]) == 2, "want x (R, D)"),
				op.Need(eps > 0, "eps must be positive (got %g)", eps),
			)
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}} }, // |row|
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(rows, op.RowGrain(cols), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x := c.In[0].F32[r*cols : (r+1)*cols]
					norm := float32(math.Sqrt(vector.SumSq(x)))
					c.Aux[0].F32[r] = norm
					vector.Scale(c.Out.F32[r*cols:(r+1)*cols], 1/max(norm, eps), x)
				}
			})
		},
		On: oncuda.L2Normalize(eps),
		Grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(l2NormalizeGrad(eps), out, dy)}
		},
	}, x)
}

// l2NormalizeGrad returns dx = (dy - y (y.dy)) / |x| for the output y, whose norms it
// reads, and dy; dx = dy/eps for a row shorter than eps.
func l2NormalizeGrad(eps float32) *op.Op {
	return &op.Op{
		Kind: "l2 normalize dx", Args: fmt.Sprintf("eps=%g", eps), Diff: []bool{false, false}, InPlace: []int{1},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(rows, op.RowGrain(cols), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					y, dy := c.In[0].F32[r*cols:(r+1)*cols], c.In[1].F32[r*cols:(r+1)*cols]
					dx := c.Out.F32[r*cols : (r+1)*cols]
					norm := c.InAux[0][0].F32[r]
					if norm < eps {
						vector.Scale(dx, 1/eps, dy)
						continue
					}
					along := vector.Dot(y, dy)
					vector.Axpby(dx, 1/norm, dy, -along/norm, y)
				}
			})
		},
		On: oncuda.L2NormalizeGrad(eps),
	}
}
