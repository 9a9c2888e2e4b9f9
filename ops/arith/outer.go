package arith

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Outer returns the outer product of each row of x (R, M) with the same row of y (R, N), row after
// row of the product: (R, M*N), where column m*N+n is x_m * y_n.
func Outer(x, y *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "outer", Diff: []bool{true, true}, On: oncuda.Outer(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, y := in[0], in[1]
			if err := op.Need(len(x) == 2 && len(y) == 2 && x[0] == y[0],
				"want two matrices with as many rows (got %v and %v)", x, y); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0], x[1] * y[1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			m, n := c.In[0].Dim(1), c.In[1].Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(m*n), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					y := c.In[1].F32[r*n:][:n]
					for i, v := range c.In[0].F32[r*m:][:m] {
						vector.Scale(c.Out.F32[(r*m+i)*n:][:n], v, y)
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(outerGradX(), in[1], dy), op.Apply(outerGradY(), in[0], dy)}
		},
	}, x, y)
}

// outerGradX returns the sums of dy (R, M*N) over the columns of y, weighted by y (R, N): (R, M).
func outerGradX() *op.Op {
	return outerGrad("outer dx", oncuda.OuterGradX(), func(dx, y, dy []float32) {
		for i := range dx {
			dx[i] = vector.Dot(y, dy[i*len(y):][:len(y)])
		}
	})
}

// outerGradY returns the sums of dy (R, M*N) over the columns of x, weighted by x (R, M): (R, N).
func outerGradY() *op.Op {
	return outerGrad("outer dy", oncuda.OuterGradY(), func(dy, x, d []float32) {
		clear(dy)
		for i, v := range x {
			vector.Axpy(dy, v, d[i*len(dy):][:len(dy)])
		}
	})
}

// outerGrad returns an op of each row of an operand (R, N) of Outer and of dy (R, M*N): (R, M).
func outerGrad(kind string, on map[string]exec.DeviceStep, row func(dst, other, dy []float32)) *op.Op {
	return &op.Op{
		Kind: kind, Diff: []bool{false, false}, On: on,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0], in[1][1] / in[0][1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			m, n, width := c.Out.Dim(1), c.In[0].Dim(1), c.In[1].Dim(1)
			return c.For(c.Out.Dim(0), op.RowGrain(width), func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					row(c.Out.F32[r*m:][:m], c.In[0].F32[r*n:][:n], c.In[1].F32[r*width:][:width])
				}
			})
		},
	}
}
