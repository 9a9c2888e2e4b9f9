package contrast

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/tensor"
)

// backward is the gradient op of the rows' losses: operands are the forward's, its
// output and the gradient g (R) of that. The result is g*(softmax(s) - y), made in
// one pass over each row; it may take the memory of the logits or of the teacher.
func (x *crossEntropy) backward() *op.Op {
	o := &op.Op{Kind: "cross entropy dx", Args: x.args(), Diff: make([]bool, x.operands+2), InPlace: []int{0},
		On: x.onCUDA().Backward()}
	if x.teacher >= 0 {
		o.InPlace = append(o.InPlace, x.teacher)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, alpha, uniform := 0, float32(0), float32(0)
		body := func(_, lo, hi int) {
			blocks := chain.Blocks(total)
			for i := lo; i < hi; i++ {
				x.partGradient(c, i/blocks, i%blocks, total, cols, alpha, uniform)
			}
		}
		hard := func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				x.hardGradient(c, r, total, alpha, uniform)
			}
		}
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			alpha, uniform = x.weight(c), x.share(c)
			c.Engine.For(rows*chain.Blocks(total), 2, body)
			c.Engine.For(rows, 256, hard)
			return nil
		}, nil
	}
	return o
}

// gradient returns the gradient that reaches row r, 0 for a row that is left out.
func (x *crossEntropy) gradient(c *exec.Call, r int) float32 {
	if c.InAux[x.operands][ceWeight].F32[r] == 0 {
		return 0
	}
	return c.In[x.operands+1].F32[r]
}

// partGradient writes block b of the columns of row r of the gradient, the hard targets
// excepted.
func (x *crossEntropy) partGradient(c *exec.Call, r, b, total, cols int, alpha, uniform float32) {
	from, to := b*chain.Block, min((b+1)*chain.Block, total)
	out := c.Out.F32[r*total+from : r*total+to]
	g := x.gradient(c, r)
	if g == 0 {
		clear(out)
		return
	}
	n := max(0, min(cols-from, len(out)))
	clear(out[n:])
	out = out[:n]
	s := c.In[0].F32[r*total+from:][:n]
	aux := c.InAux[x.operands]
	if alpha == 0 {
		vector.SoftmaxDiff(out, s, aux[ceLogits].F32[r], g)
		subtract(out, g*uniform/float32(cols))
		return
	}
	t := c.In[x.teacher].F32[r*total+from:][:n]
	vector.SoftmaxDiff2(out, s, t, aux[ceLogits].F32[r], g, aux[ceTeacher].F32[r], g*alpha*(1-uniform))
	subtract(out, g*uniform/float32(cols))
}

// subtract takes a from every element of x.
func subtract(x []float32, a float32) {
	if a == 0 {
		return
	}
	for i := range x {
		x[i] -= a
	}
}

// hardGradient subtracts the hard targets of row r.
func (x *crossEntropy) hardGradient(c *exec.Call, r, total int, alpha, uniform float32) {
	g := x.gradient(c, r)
	if g == 0 {
		return
	}
	aux := c.InAux[x.operands]
	out := c.Out.F32[r*total : (r+1)*total]
	hard := g * (1 - alpha) * (1 - uniform) * aux[ceWeight].F32[r]
	if e := x.further(c, r); e >= 0 {
		out[e] -= hard
	}
	if x.labels >= 0 {
		out[c.In[x.labels].I32[r]] -= hard
		return
	}
	next := aux[ceNext].I32
	for j := aux[ceFirst].I32[r]; j >= 0; j = next[j] {
		out[j] -= hard
	}
}
