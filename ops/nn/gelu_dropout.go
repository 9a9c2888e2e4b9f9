package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GELUDropout returns Dropout(GELU(x), bits, keep) for x (R, D) in one pass: the hidden layer of a wide head is bound
// by memory, which it goes through half as often.
func GELUDropout(x, bits *gorgonia.Node, keep float32) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "gelu dropout", Args: fmt.Sprintf("keep=%g", keep), Diff: []bool{true, false}, InPlace: []int{0},
		ReadsHalf: []int{0}, WritesHalf: []int{op.Output},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return droppedShape(in, keep) },
		Host: func(c *exec.Call) (exec.Step, error) {
			return droppedRows(c, func(at, n int, bits []int32) {
				vector.GELUDropout(valuesAt(c.Out, at), valuesAt(c.In[0], at), n, bits, 1/keep)
			}), nil
		},
		On: oncuda.GELUDropout(keep),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(geluDropoutGrad(keep), in[0], in[1], dy), nil}
		},
	}, x, bits)
}

// geluDropoutGrad returns dx for x, bits and dy.
func geluDropoutGrad(keep float32) *op.Op {
	return &op.Op{
		Kind: "gelu dropout dx", Args: fmt.Sprintf("keep=%g", keep), Diff: []bool{false, false, false},
		InPlace:   []int{2, 0},
		ReadsHalf: []int{0, 2}, WritesHalf: []int{op.Output},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(in[0].Eq(in[2]), "x and dy must have one shape"); err != nil {
				return nil, err
			}
			return droppedShape(in, keep)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return droppedRows(c, func(at, n int, bits []int32) {
				vector.GELUDropoutGrad(valuesAt(c.Out, at), valuesAt(c.In[0], at), valuesAt(c.In[2], at), n, bits,
					1/keep)
			}), nil
		},
		On: oncuda.GELUDropoutGrad(keep),
	}
}

// droppedShape returns the shape of x (R, D), the first operand, if the second one has bits for it.
func droppedShape(in []tensor.Shape, keep float32) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2, "want x (R, D)"); err != nil {
		return nil, err
	}
	return in[0].Clone(), op.All(op.WantVector(in[1], "bits", in[0][0]*MaskWords(in[0][1])), CheckKeep(keep))
}

// droppedRows returns a step that calls part for all of the first operand's values, from value at on and with their
// bits, the second operand: for many at a time where rows end with a word of bits, else row by row.
func droppedRows(c *exec.Call, part func(at, n int, bits []int32)) exec.Step {
	rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
	words := MaskWords(cols)
	n, grain := rows, op.RowGrain(cols)
	body := func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			part(r*cols, cols, c.In[1].I32[r*words:(r+1)*words])
		}
	}
	if cols%32 == 0 { // no gaps between the rows: one long row
		n, grain = rows*words, op.ElementGrain/32
		body = func(_, lo, hi int) { part(lo*32, (hi-lo)*32, c.In[1].I32[lo:hi]) }
	}
	return func() error {
		c.Engine.For(n, grain, body)
		return nil
	}
}

// valuesAt returns the values of an array from one on.
func valuesAt(a exec.Array, at int) vector.Values {
	if a.BF16 != nil {
		return vector.Values{BF16: a.BF16[at:]}
	}
	return vector.Values{F32: a.F32[at:]}
}
