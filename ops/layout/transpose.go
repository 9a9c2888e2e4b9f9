package layout

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Transpose returns x^T (C, R) of a matrix x (R, C). It is a copy: cheap beside the
// matrix product that would compute the transposed result anew, such as the logits of
// the other direction of a contrast.
func Transpose(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "transpose", Diff: []bool{true}, WritesHalf: []int{op.Output}, On: oncuda.Transpose(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if len(in[0]) != 2 {
				return nil, op.Need(false, "want a matrix")
			}
			return tensor.Shape{in[0][1], in[0][0]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			body := func(_, lo, hi int) { transpose(c.Out, c.In[0].F32, rows, cols, lo, hi) }
			grain := max(1, op.ElementGrain/max(1, rows))
			return func() error {
				c.Engine.For(cols, grain, body)
				return nil
			}, nil
		},
		Grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Transpose(dy)}
		},
	}, x)
}

// transpose writes rows lo to hi of the transpose y of x (rows, cols).
func transpose(y exec.Array, x []float32, rows, cols, lo, hi int) {
	if y.BF16 == nil {
		gemm.Transpose(y.F32[lo*rows:], rows, x[lo:], cols, rows, hi-lo)
		return
	}
	const side = 64 // of squares that are turned before they are rounded
	var turned [side * side]float32
	for j0 := lo; j0 < hi; j0 += side {
		n := min(side, hi-j0)
		for i0 := 0; i0 < rows; i0 += side {
			m := min(side, rows-i0)
			gemm.Transpose(turned[:], side, x[i0*cols+j0:], cols, m, n)
			for j := range n {
				vector.ToBF16(y.BF16[(j0+j)*rows+i0:][:m], turned[j*side:])
			}
		}
	}
}
