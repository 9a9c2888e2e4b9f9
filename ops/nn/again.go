package nn

import (
	"strings"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// The gradient of a linear layer's weights reads what the layer multiplied. Where that is one
// pass over what the backward pass keeps in any case, it is made again instead of kept: the
// output of an activation, of what that was applied to (a fifth of the memory of a
// transformer), and the normalised sum of AddNorm, of the sum and its statistics. Bits are those of the
// first time.

// again returns x, computed again if that is cheap and the plan wants it, see exec.Remaker.
func again(x *gorgonia.Node) *gorgonia.Node {
	o := op.Of(x)
	if o == nil {
		return x
	}
	if o.Kind == addNormOutputKind {
		sum := op.Operand(x, 0)
		return op.Apply(normalised(), sum, op.Operand(x, 1), op.Operand(sum, 3), x)
	}
	if name, ok := strings.CutPrefix(o.Kind, "linear "); ok {
		if of, ok := vector.ActivationOf(name); ok {
			return op.Apply(activated(of), before(x), x)
		}
	}
	return x
}

// activated returns the activation of an operand of any shape. The second operand is the output as it was made first.
func activated(of vector.Activation) *op.Op {
	return &op.Op{
		Kind: of.String() + " again", Diff: []bool{false, false}, Remakes: true, ReadsHalf: []int{0},
		WritesHalf: []int{op.Output},
		Shape:      func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:         oncuda.Activation(of),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), geluGrain, func(_, lo, hi int) {
				x, y := c.In[0], c.Out
				switch {
				case x.BF16 != nil && y.BF16 != nil:
					of.HalfToBF16(y.BF16[lo:hi], x.BF16[lo:hi])
				case x.BF16 != nil:
					vector.FromBF16(y.F32[lo:hi], x.BF16[lo:hi])
					of.Apply(y.F32[lo:hi], y.F32[lo:hi])
				case y.BF16 != nil:
					of.ToBF16(y.BF16[lo:hi], x.F32[lo:hi])
				default:
					of.Apply(y.F32[lo:hi], x.F32[lo:hi])
				}
			})
		},
	}
}

// normalised returns the normalised sum of AddNorm for its sum, with which the statistics come,
// gamma and beta. The fourth operand is the output as it was made first.
func normalised() *op.Op {
	return &op.Op{
		Kind: "norm again", Diff: []bool{false, false, false, false}, Remakes: true,
		WritesHalf: []int{op.Output}, HalfScratch: layerNormRows,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return c.For(rows, op.RowGrain(cols), func(worker, lo, hi int) {
				for r := lo; r < hi; r++ {
					mean, rstd := c.InAux[0][addNormMean].F32[r], c.InAux[0][addNormRstd].F32[r]
					row, at, to := []float32(nil), r*cols, (r+1)*cols
					if c.Out.BF16 != nil {
						row = c.Scratch[worker*cols : (worker+1)*cols]
					} else {
						row = c.Out.F32[at:to]
					}
					vector.Normalise(row, c.In[0].F32[at:to], c.In[1].F32, c.In[2].F32, mean, rstd)
					if c.Out.BF16 != nil {
						vector.ToBF16(c.Out.BF16[at:to], row)
					}
				}
			})
		},
		On: oncuda.Normalised(),
	}
}
