package layout

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ConcatColumns puts the columns of b (R, E) after those of a (R, D): (R, D+E).
func ConcatColumns(a, b *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "concat columns", Diff: []bool{true, true}, On: oncuda.ConcatColumns(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			a, b := in[0], in[1]
			if err := op.Need(len(a) == 2 && len(b) == 2 && a[0] == b[0],
				"want two matrices with as many rows (got %v and %v)", a, b); err != nil {
				return nil, err
			}
			return tensor.Shape{a[0], a[1] + b[1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d, width := c.In[0].Dim(1), c.Out.Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(width), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					row := c.Out.F32[r*width:][:width]
					copy(row[:d], c.In[0].F32[r*d:])
					copy(row[d:], c.In[1].F32[r*(width-d):])
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d, e := in[0].Shape()[1], in[1].Shape()[1]
			return gorgonia.Nodes{op.Apply(columnRange(0, d), dy), op.Apply(columnRange(d, e), dy)}
		},
	}, a, b)
}

// Columns returns n columns of x (R, D) from column from on: (R, n). All columns of x are x itself.
func Columns(x *gorgonia.Node, from, n int) *gorgonia.Node {
	if x != nil && from == 0 && len(x.Shape()) == 2 && n == x.Shape()[1] {
		return x
	}
	return op.Apply(columnRange(from, n), x)
}

// columnRange is the op of Columns. Its gradient is that of rows, of what is transposed.
func columnRange(from, n int) *op.Op {
	return &op.Op{
		Kind: "column range", Args: fmt.Sprintf("from=%d n=%d", from, n), Diff: []bool{true},
		On: oncuda.ColumnRange(from, n),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x := in[0]
			if err := op.Need(len(x) == 2 && from >= 0 && n > 0 && from+n <= x[1],
				"want x (R, D) with columns [%d, %d) (got %v)", from, from+n, x); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0], n}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Transpose(op.Apply(spreadRows(in[0].Shape()[1], from, 1, n), Transpose(dy)))}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			width := c.In[0].Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(n), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					copy(c.Out.F32[r*n:][:n], c.In[0].F32[r*width+from:])
				}
			})
		},
	}
}
