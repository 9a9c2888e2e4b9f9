package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/tensor"
)

// backward is the gradient op of the rows' losses: operands are the forward's, its
// output and the gradient g (R) of that. The result is g*(softmax(s) - y), made in
// one pass over each row; it may take the memory of the logits or of the teacher.
func (x *crossEntropy) backward() *op {
	o := &op{kind: "cross entropy dx", args: x.args(), diff: make([]bool, x.operands+2), inPlace: []int{0}}
	if x.teacher >= 0 {
		o.inPlace = append(o.inPlace, x.teacher)
	}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, alpha := 0, float32(0)
		body := func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				x.rowGradient(c, r, total, cols, alpha)
			}
		}
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			alpha = x.weight(c)
			c.Engine.For(rows, 1, body)
			return nil
		}, nil
	}
	return o
}

// rowGradient writes row r of the gradient.
func (x *crossEntropy) rowGradient(c *exec.Call, r, total, cols int, alpha float32) {
	aux := c.InAux[x.operands]
	out := c.Out.F32[r*total : (r+1)*total]
	weight, g := aux[ceWeight].F32[r], c.In[x.operands+1].F32[r]
	if weight == 0 || g == 0 {
		clear(out)
		return
	}
	clear(out[cols:])
	out = out[:cols]
	s := c.In[0].F32[r*total : r*total+cols]
	lse := aux[ceLogits].F32[r]
	if alpha == 0 {
		kernel.SoftmaxDiff(out, s, lse, g)
	} else {
		t := c.In[x.teacher].F32[r*total : r*total+cols]
		kernel.SoftmaxDiff2(out, s, t, lse, g, aux[ceTeacher].F32[r], g*alpha)
	}
	hard := g * (1 - alpha) * weight
	if x.labels >= 0 {
		out[c.In[x.labels].I32[r]] -= hard
		return
	}
	next := aux[ceNext].I32
	for j := aux[ceFirst].I32[r]; j >= 0; j = next[j] {
		out[j] -= hard
	}
}
