package layout

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ConcatRows puts the rows of b (R2, D) below those of a (R1, D): (R1+R2, D). A row may have more axes, such as an
// image.
func ConcatRows(a, b *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "concat rows", Diff: []bool{true, true}, On: oncuda.ConcatRows(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			a, b := in[0], in[1]
			if err := op.Need(len(a) >= 2 && len(b) == len(a) && slices.Equal(a[1:], b[1:]),
				"want a (R1, D) and b (R2, D)"); err != nil {
				return nil, err
			}
			return append(tensor.Shape{a[0] + b[0]}, a[1:]...), nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Len()
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				out := c.Out.F32[lo:hi]
				if lo < n {
					out = out[copy(out, c.In[0].F32[lo:min(hi, n)]):]
				}
				copy(out, c.In[1].F32[max(lo-n, 0):max(hi-n, 0)])
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			n := in[0].Shape()[0]
			return gorgonia.Nodes{rowsFrom(dy, 0, in[0].Shape()), rowsFrom(dy, n, in[1].Shape())}
		},
	}, a, b)
}

// rowsFrom returns the rows of x from one on that make up a shape.
func rowsFrom(x *gorgonia.Node, from int, shape tensor.Shape) *gorgonia.Node {
	n := shape[0]
	if len(shape) == 2 {
		return StridedRows(x, from, 1, n)
	}
	rows := StridedRows(Reshape(x, x.Shape()[0], shape.TotalSize()/n), from, 1, n)
	return reshape(rows, shape.Clone())
}

// Reshape returns x, of one axis or more, as a matrix (rows, cols) with the same elements in
// the same order. It names x's memory and costs nothing.
func Reshape(x *gorgonia.Node, rows, cols int) *gorgonia.Node {
	return reshape(x, tensor.Shape{rows, cols})
}

func reshape(x *gorgonia.Node, shape tensor.Shape) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "reshape", Args: fmt.Sprint("shape=", shape), Diff: []bool{true}, Alias: &[2]int{0, -1},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return shape.Clone(), op.All(
				op.Need(len(in[0]) >= 1, "want one axis or more (got %v)", in[0]),
				op.Need(slices.Min(shape) > 0 && in[0].TotalSize() == shape.TotalSize(), "%v is not as large as %v",
					in[0], shape),
			)
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{reshape(dy, in[0].Shape().Clone())}
		},
	}, x)
}
