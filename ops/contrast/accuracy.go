package contrast

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Accuracy returns the scalar share of the rows of logits (R, V) whose label has
// the largest logit, for labels (R) int32; rows with a negative label do not
// count, and without any other the result is 0. A label that shares the largest
// logit is wrong, so that constant logits score 0. There is no gradient.
func Accuracy(logits, labels *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "accuracy", Diff: []bool{false, false}, On: oncuda.Accuracy(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.ScalarShape(), op.All(
				op.Need(len(in[0]) == 2, "want logits (R, V)"),
				op.Need(len(in[1]) == 1 && in[1][0] == in[0][0], "want a label for each of %d rows (got %v)", in[0][0],
					in[1]),
			)
		},
		Scratch: func(in []tensor.Shape, _ int) int { return in[0][0] },
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			body := func(_, lo, hi int) {
				for r := lo; r < hi; r++ {
					c.Scratch[r] = hit(c.In[0].F32[r*cols:(r+1)*cols], int(c.In[1].I32[r]))
				}
			}
			return func() error {
				c.Engine.For(rows, op.RowGrain(cols), body)
				hits, kept := float32(0), 0
				for r, l := range c.In[1].I32 {
					if l >= 0 {
						hits += c.Scratch[r]
						kept++
					}
				}
				c.Out.F32[0] = hits / float32(max(1, kept))
				return nil
			}, nil
		},
	}, logits, labels)
}

// hit returns 1 if column l holds the largest value of row alone, else 0.
func hit(row []float32, l int) float32 {
	if l < 0 || l >= len(row) {
		return 0
	}
	if v := row[l]; vector.Max(row[:l]) < v && vector.Max(row[l+1:]) < v {
		return 1
	}
	return 0
}
