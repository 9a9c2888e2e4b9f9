package arith

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SumProducts returns the sums over k of x_k * y_k, element by element, for rows x and y (R, K*n)
// of K groups of n columns: (R, n). The dot products of rows are similarity.RowProducts.
func SumProducts(x, y *gorgonia.Node, n int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "sum products", Args: fmt.Sprintf("n=%d", n), Diff: []bool{true, true},
		On: oncuda.SumProducts(n),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, y := in[0], in[1]
			if err := op.Need(n > 0 && len(x) == 2 && x.Eq(y) && x[1]%n == 0,
				"want two matrices (R, K*n) of groups of n = %d columns (got %v and %v)", n, x, y); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0], n}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			width := c.In[0].Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(width), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					x, y := c.In[0].F32[r*width:][:width], c.In[1].F32[r*width:][:width]
					sumProducts(c.Out.F32[r*n:][:n], x, y)
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(mulGroups(n), in[1], dy), op.Apply(mulGroups(n), in[0], dy)}
		},
	}, x, y)
}

// sumProducts adds up the products of groups as long as dst.
func sumProducts(dst, x, y []float32) {
	n := len(dst)
	vector.Mul(dst, x[:n], y[:n])
	for at := n; at < len(x); at += n {
		a, b := x[at:][:n], y[at:][:n]
		for j := range dst {
			dst[j] += a[j] * b[j]
		}
	}
}

// mulGroups returns x (R, K*n) with each of its groups of n columns times dy (R, n).
func mulGroups(n int) *op.Op {
	return &op.Op{
		Kind: "mul groups", Args: fmt.Sprintf("n=%d", n), Diff: []bool{false, false}, InPlace: []int{0},
		On:    oncuda.MulGroups(n),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			width := c.In[0].Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(width), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					dx, x, dy := c.Out.F32[r*width:][:width], c.In[0].F32[r*width:][:width], c.In[1].F32[r*n:][:n]
					for at := 0; at < width; at += n {
						vector.Mul(dx[at:][:n], x[at:][:n], dy)
					}
				}
			})
		},
	}
}
