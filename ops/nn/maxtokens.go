package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// MaxTokens returns the largest value of each channel over the first lengths (B) int32 of the l rows of each sequence
// of x (B*l, D): (B, D). Of equal ones the first counts, and of no rows the largest is 0.
func MaxTokens(x, lengths *gorgonia.Node, l int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "max tokens", Args: fmt.Sprintf("l=%d", l), Diff: []bool{true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return pooledShape(in[0], in[1], l) },
		Aux: func(in []tensor.Shape) []exec.AuxSpec { // the places of the largest, -1 for none
			return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0] / l, in[0][1]}, Int: true}}
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					out, at, x := c.Out.F32[b*d:][:d], c.Aux[0].I32[b*d:][:d], c.In[0].F32[b*l*d:]
					n := int(c.In[1].I32[b])
					for j := range at {
						out[j], at[j] = 0, -1
					}
					for k := range n {
						for j, v := range x[k*d:][:d] {
							if k == 0 || v > out[j] {
								out[j], at[j] = v, int32(k)
							}
						}
					}
				}
			}
			return func() error {
				if err := checkLengths("max tokens", c.In[1].I32, l); err != nil {
					return err
				}
				c.Engine.For(c.Out.Dim(0), op.RowGrain(l*d), body)
				return nil
			}, nil
		},
		On: oncuda.MaxTokens(l),
		Grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(maxTokensGrad(l), out, dy), nil}
		},
	}, x, lengths)
}

// maxTokensGrad returns dx (B*l, D) for the output and dy.
func maxTokensGrad(l int) *op.Op {
	return &op.Op{
		Kind: "max tokens dx", Args: fmt.Sprintf("l=%d", l), Diff: []bool{false, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0] * l, in[0][1]}, op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			d := c.Out.Dim(1)
			return c.For(c.In[1].Dim(0), op.RowGrain(l*d), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					dx, dy := c.Out.F32[b*l*d:][:l*d], c.In[1].F32[b*d:][:d]
					clear(dx)
					for j, at := range c.InAux[0][0].I32[b*d:][:d] {
						if at >= 0 {
							dx[int(at)*d+j] = dy[j]
						}
					}
				}
			})
		},
		On: oncuda.MaxTokensGrad(l),
	}
}

// pooledShape is the shape of one row for each sequence of l tokens x with lengths.
func pooledShape(x, lengths tensor.Shape, l int) (tensor.Shape, error) {
	if err := op.All(
		op.Need(l > 0, "want sequences of at least one row (got %d)", l),
		op.Need(len(x) == 2, "want x (B*l, D)"),
	); err != nil {
		return nil, err
	}
	if err := op.Need(x[0]%l == 0, "rows must be a multiple of %d (got %d)", l, x[0]); err != nil {
		return nil, err
	}
	rows := x[0] / l
	return tensor.Shape{rows, x[1]}, op.Need(len(lengths) == 1 && lengths[0] == rows,
		"lengths must have shape (%d) (got %v)", rows, lengths)
}

// checkLengths refuses lengths outside [0, l].
func checkLengths(kind string, lengths []int32, l int) error {
	for b, n := range lengths {
		if n < 0 || int(n) > l {
			return fmt.Errorf("ops: %s: lengths[%d] is %d: want [0, %d]", kind, b, n, l)
		}
	}
	return nil
}
