package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ConcatRows puts the rows of b (R2, D) below those of a (R1, D): (R1+R2, D).
func ConcatRows(a, b *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "concat rows", diff: []bool{true, true},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			a, b := in[0], in[1]
			if err := need(len(a) == 2 && len(b) == 2 && a[1] == b[1], "want a (R1, D) and b (R2, D)"); err != nil {
				return nil, err
			}
			return tensor.Shape{a[0] + b[0], a[1]}, nil
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Len()
			body := func(_, lo, hi int) {
				out := c.Out.F32[lo:hi]
				if lo < n {
					out = out[copy(out, c.In[0].F32[lo:min(hi, n)]):]
				}
				copy(out, c.In[1].F32[max(lo-n, 0):max(hi-n, 0)])
			}
			return func() error {
				c.Engine.For(c.Out.Len(), elementGrain, body)
				return nil
			}, nil
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			n := in[0].Shape()[0]
			return gorgonia.Nodes{StridedRows(dy, 0, 1, n), StridedRows(dy, n, 1, in[1].Shape()[0])}
		},
	}, a, b)
}

// Reshape returns the matrix x as one of (rows, cols) with the same elements in the same
// order. It names x's memory and costs nothing.
func Reshape(x *gorgonia.Node, rows, cols int) *gorgonia.Node {
	return apply(&op{
		kind: "reshape", args: fmt.Sprintf("rows=%d cols=%d", rows, cols), diff: []bool{true}, alias: &[2]int{0, -1},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{rows, cols}, all(
				need(len(in[0]) == 2, "want a matrix (got %v)", in[0]),
				need(rows > 0 && cols > 0 && in[0].TotalSize() == rows*cols, "%v is not as large as (%d, %d)", in[0], rows, cols),
			)
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{Reshape(dy, in[0].Shape()[0], in[0].Shape()[1])}
		},
	}, x)
}

// RepeatFirst puts k more copies of the first of every l values of x (N*l) int32 in front
// of it: (N*(l+k)), such as the id of a class token before every text.
func RepeatFirst(x *gorgonia.Node, l, k int) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if err := need(len(in[0]) == 1 && l > 0 && k >= 0, "want a vector, a length of at least 1 and copies of at least 0 (got %v, %d and %d)", in[0], l, k); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0] / l * (l + k)}, need(in[0][0]%l == 0, "values must be a multiple of %d (got %d)", l, in[0][0])
	}
	o := intsOp("repeat first", 1, shape, func(c *exec.Call) error {
		out := c.Out.I32
		for x := c.In[0].I32; len(x) > 0; x = x[l:] {
			for i := range k {
				out[i] = x[0]
			}
			out = out[k+copy(out[k:], x[:l]):]
		}
		return nil
	})
	o.args = fmt.Sprintf("l=%d k=%d", l, k)
	return apply(o, x)
}

// AddInt adds k to every value of x (N) int32.
func AddInt(x *gorgonia.Node, k int) *gorgonia.Node {
	o := intsOp("add int", 1, sameInts, func(c *exec.Call) error {
		for i, v := range c.In[0].I32 {
			c.Out.I32[i] = v + int32(k)
		}
		return nil
	})
	o.args = fmt.Sprintf("k=%d", k)
	return apply(o, x)
}
