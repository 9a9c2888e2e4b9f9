package similarity

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// RowProducts returns the products (B*L) of the rows of x (B*L, C) with those of y (B, C), of which each is for L
// rows of x, one after the other: x_r . y_(r/L).
func RowProducts(x, y *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "row products", Diff: []bool{true, true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, y := in[0], in[1]
			if err := op.Need(len(x) == 2 && len(y) == 2 && x[1] == y[1] && y[0] > 0 && x[0]%y[0] == 0,
				"want x (B*L, C) and y (B, C) (got %v and %v)", x, y); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0]}, nil
		},
		On: oncuda.RowProducts(),
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			each := rows / c.In[1].Dim(0)
			return c.For(rows, op.RowGrain(cols), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					c.Out.F32[r] = vector.Dot(c.In[0].F32[r*cols:][:cols], c.In[1].F32[r/each*cols:][:cols])
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d := op.Apply(rowProductsGrad(), in[0], in[1], dy)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape())}
		},
	}, x, y)
}

// rowProductsGrad returns the gradient of x for x, y and that of the products; the gradient of y is its auxiliary
// result.
func rowProductsGrad() *op.Op {
	return &op.Op{
		Kind: "row products dx", Diff: make([]bool, 3),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[2].TotalSize() == in[0][0], "dy must have a value for each row of x")
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1].Clone()}} },
		On:  oncuda.RowProductsGrad(),
		Host: func(c *exec.Call) (exec.Step, error) {
			n, cols := c.In[1].Dim(0), c.In[0].Dim(1)
			each := c.In[0].Dim(0) / n
			return c.For(n, op.RowGrain(2*each*cols), func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					y, dy := c.In[1].F32[i*cols:][:cols], c.Aux[0].F32[i*cols:][:cols]
					clear(dy)
					for r := i * each; r < (i+1)*each; r++ {
						vector.Scale(c.Out.F32[r*cols:][:cols], c.In[2].F32[r], y)
						vector.Axpy(dy, c.In[2].F32[r], c.In[0].F32[r*cols:][:cols])
					}
				}
			})
		},
	}
}
