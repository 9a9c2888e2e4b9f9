package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/tensor"
)

// softBlock is the number of teacher probabilities that are made at a time: they
// stay in the first-level cache.
const softBlock = 2048

// backward is the gradient op of the rows' losses: operands are the forward's, its
// output and the gradient g (R) of that. The result is g*(softmax(s) - y), made in
// one pass over each row; it may take the memory of the logits or of the teacher.
func (x *crossEntropy) backward() *op {
	o := &op{kind: "cross entropy dx", args: x.args(), diff: make([]bool, x.operands+2), inPlace: []int{0}}
	if x.teacher >= 0 {
		o.inPlace = append(o.inPlace, x.teacher)
	}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.scratch = func(_ []tensor.Shape, threads int) int { return threads * softBlock }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, alpha := 0, float32(0)
		body := func(worker, lo, hi int) {
			scratch := c.Scratch[worker*softBlock : (worker+1)*softBlock]
			for r := lo; r < hi; r++ {
				x.rowGradient(c, r, total, cols, alpha, scratch)
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
func (x *crossEntropy) rowGradient(c *exec.Call, r, total, cols int, alpha float32, scratch []float32) {
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
		kernel.ExpSum(out, s, lse)
		kernel.Scale(out, g, out)
	} else {
		t := c.In[x.teacher].F32[r*total : r*total+cols]
		softDifference(out, s, t, lse, aux[ceTeacher].F32[r], g, g*alpha, scratch)
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

// softDifference sets dst = a*exp(s-lseS) - b*exp(t-lseT). dst may be s or t.
func softDifference(dst, s, t []float32, lseS, lseT, a, b float32, scratch []float32) {
	for lo := 0; lo < len(dst); lo += len(scratch) {
		hi := min(lo+len(scratch), len(dst))
		soft, d := scratch[:hi-lo], dst[lo:hi]
		kernel.ExpSum(soft, t[lo:hi], lseT)
		kernel.ExpSum(d, s[lo:hi], lseS)
		kernel.Scale(d, a, d)
		kernel.Axpy(d, -b, soft)
	}
}
