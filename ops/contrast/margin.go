package contrast

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Margin returns the mean hinge loss of scores p (R) of what belongs together and n (R) of what does not,
//
//	sum_r w_r max(0, margin - p_r + n_r) / sum_r w_r
//
// by weights w (R) >= 0, such as 1 for what counts and 0 for all else; 0 where none is above 0, and
// a row of weight 0 is not read. Gradients go to p and n.
func Margin(positives, negatives, weights *gorgonia.Node, margin float64) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "margin", Args: fmt.Sprintf("margin=%g", margin), Diff: []bool{true, true, false}, Shape: marginShape,
		On: oncuda.Margin(margin),
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error { // of a few thousand rows: not worth a thread
				sum, all := 0., 0.
				for r, w := range c.In[2].F32 {
					if w > 0 {
						sum, all = sum+float64(w)*violation(c, r, margin), all+float64(w)
					}
				}
				if c.Out.F32[0] = 0; all > 0 {
					c.Out.F32[0] = float32(sum / all)
				}
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			d := op.Apply(marginGrad(margin), append(append(gorgonia.Nodes{}, in...), dy)...)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape()), nil}
		},
	}, positives, negatives, weights)
}

func marginShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 1, "want scores (R) (got %v)", in[0]); err != nil {
		return nil, err
	}
	return tensor.ScalarShape(), op.All(op.WantShape(in, 1, "negatives", in[0][0]),
		op.WantShape(in, 2, "weights", in[0][0]))
}

// violation is the hinge of row r, NaN where a score is.
func violation(c *exec.Call, r int, margin float64) float64 {
	return max(0, margin-float64(c.In[0].F32[r])+float64(c.In[1].F32[r]))
}

// marginGrad returns the gradient of the positives for those of the loss, the last operand; that of the negatives
// is its auxiliary result.
func marginGrad(margin float64) *op.Op {
	return &op.Op{
		Kind: "margin dp", Args: fmt.Sprintf("margin=%g", margin), Diff: make([]bool, 4), On: oncuda.MarginGrad(margin),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			_, err := marginShape(in[:3])
			return in[0].Clone(), err
		},
		Aux: func(in []tensor.Shape) []exec.AuxSpec { return []exec.AuxSpec{{Shape: in[1].Clone()}} },
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error {
				all := 0.
				for _, w := range c.In[2].F32 {
					all += float64(max(0, w))
				}
				for r, w := range c.In[2].F32 {
					d := float32(0)
					if w > 0 && !(violation(c, r, margin) <= 0) {
						d = c.In[3].F32[0] * float32(float64(w)/all)
					}
					c.Out.F32[r], c.Aux[0].F32[r] = -d, d
				}
				return nil
			}, nil
		},
	}
}
