package conv

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/conv/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// MaxPool returns the largest value of each channel in each window of x (B*H*W, C), PyTorch's nn.MaxPool2d:
// (B*Ho*Wo, C). Places outside the image take no part; of equal values the first counts, and NaN is the largest.
func MaxPool(x *gorgonia.Node, g Geometry) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "max pool", Args: g.String(), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			b, err := g.images(in[0])
			if err != nil {
				return nil, err
			}
			return tensor.Shape{b * g.out(), in[0][1]}, nil
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { // the places of the largest
			return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0] / g.in() * g.out(), in[0][1]}, Int: true}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(g.Kernel*g.Kernel*d), func(_, lo, hi int) {
				for row := lo; row < hi; row++ {
					image, p := row/g.out(), row%g.out()
					g.largest(c.Out.F32[row*d:][:d], c.Aux[0].I32[row*d:][:d], c.In[0].F32[image*g.in()*d:][:g.in()*d],
						p)
				}
			})
		},
		On: oncuda.MaxPool(g.sizes()),
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(g.maxPoolGrad(in[0].Shape()), out, dy)}
		},
	}, x)
}

// largest writes the largest values of window p of an image x, and their places.
func (g Geometry) largest(out []float32, at []int32, x []float32, p int) {
	d := len(out)
	top, left := p/g.OutWidth()*g.Stride-g.Pad, p%g.OutWidth()*g.Stride-g.Pad
	first := true
	for y := max(top, 0); y < min(top+g.Kernel, g.Height); y++ {
		for z := max(left, 0); z < min(left+g.Kernel, g.Width); z++ {
			place := int32(y*g.Width + z)
			row := x[int(place)*d:][:d]
			if first {
				first = false
				for j, v := range row {
					out[j], at[j] = v, place
				}
				continue
			}
			vector.MaxColumns(out, at, row, place)
		}
	}
}

// maxPoolGrad returns dx of shape x for the output, whose places it reads, and dy.
func (g Geometry) maxPoolGrad(x tensor.Shape) *op.Op {
	return &op.Op{
		Kind: "max pool dx", Args: fmt.Sprintf("%v x=%v", g, x), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return x.Clone(), op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := x[1]
			return c.For(x[0]/g.in(), 1, func(_, lo, hi int) {
				clear(c.Out.F32[lo*g.in()*d : hi*g.in()*d])
				for row := lo * g.out(); row < hi*g.out(); row++ {
					dx, dy := c.Out.F32[row/g.out()*g.in()*d:], c.In[1].F32[row*d:][:d]
					for j, at := range c.InAux[0][0].I32[row*d:][:d] {
						dx[int(at)*d+j] += dy[j]
					}
				}
			})
		},
		On: oncuda.MaxPoolGrad(g.sizes()),
	}
}
