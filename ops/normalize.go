package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// L2Normalize divides every row of x (R, D) by max(|row|, eps), as torch's
// F.normalize does.
func L2Normalize(x *gorgonia.Node, eps float32) *gorgonia.Node {
	return apply(&op{
		kind: "l2 normalize", args: fmt.Sprintf("eps=%g", eps), diff: []bool{true}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), all(
				need(len(in[0]) == 2, "want x (R, D)"),
				need(eps > 0, "eps must be positive (got %g)", eps),
			)
		},
		aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}}} }, // |row|
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x := c.In[0].F32[r*cols : (r+1)*cols]
					norm := float32(math.Sqrt(kernel.SumSq(x)))
					c.Aux[0].F32[r] = norm
					kernel.Scale(c.Out.F32[r*cols:(r+1)*cols], 1/max(norm, eps), x)
				}
			}
			return func() error {
				c.Engine.For(rows, grainRows(cols), body)
				return nil
			}, nil
		},
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{apply(l2NormalizeGrad(eps), out, dy)}
		},
	}, x)
}

// l2NormalizeGrad returns dx = (dy - y (y.dy)) / |x| for the output y, whose norms it
// reads, and dy; dx = dy/eps for a row shorter than eps.
func l2NormalizeGrad(eps float32) *op {
	return &op{
		kind: "l2 normalize dx", args: fmt.Sprintf("eps=%g", eps), diff: []bool{false, false}, inPlace: []int{1},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					y, dy := c.In[0].F32[r*cols:(r+1)*cols], c.In[1].F32[r*cols:(r+1)*cols]
					dx := c.Out.F32[r*cols : (r+1)*cols]
					norm := c.InAux[0][0].F32[r]
					if norm < eps {
						kernel.Scale(dx, 1/eps, dy)
						continue
					}
					along := kernel.Dot(y, dy)
					kernel.Axpby(dx, 1/norm, dy, -along/norm, y)
				}
			}
			return func() error {
				c.Engine.For(rows, grainRows(cols), body)
				return nil
			}, nil
		},
	}
}
