package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the op of the rows' losses.
func (x *crossEntropy) forward() *op {
	o := &op{kind: "cross entropy", args: x.args(), shape: x.shape, aux: x.aux, diff: make([]bool, x.operands)}
	o.diff[0] = true
	if x.teacher >= 0 {
		o.scratch = func(_ []tensor.Shape, threads int) int { return threads * softBlock }
	}
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, alpha := 0, float32(0)
		body := func(worker, lo, hi int) {
			var scratch []float32
			if x.teacher >= 0 {
				scratch = c.Scratch[worker*softBlock : (worker+1)*softBlock]
			}
			for r := lo; r < hi; r++ {
				x.rowLoss(c, r, total, cols, alpha, scratch)
			}
		}
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			alpha = x.weight(c)
			if err := x.targets(c, cols); err != nil {
				return err
			}
			c.Engine.For(rows, 1, body)
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, x.operands)
		grads[0] = apply(x.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
		return grads
	}
	return o
}

// targets checks the labels, or links the columns of each id.
func (x *crossEntropy) targets(c *exec.Call, cols int) error {
	if x.labels < 0 {
		chains{c.Aux[ceFirst].I32, c.Aux[ceNext].I32, c.Aux[ceTable].I32}.build(c.In[x.rowIDs].I32, c.In[x.colIDs].I32[:cols])
		return nil
	}
	for r, l := range c.In[x.labels].I32 {
		if int(l) >= cols {
			return fmt.Errorf("ops: cross entropy: label %d of row %d: want less than %d columns", l, r, cols)
		}
	}
	return nil
}

// rowLoss computes the loss and the statistics of row r:
//
//	lse(s) - (1-alpha)*mean_{j positive} s_j - alpha*sum_j softmax(t)_j s_j
func (x *crossEntropy) rowLoss(c *exec.Call, r, total, cols int, alpha float32, scratch []float32) {
	s := c.In[0].F32[r*total : r*total+cols]
	weight, hard := x.hardTarget(c, r, s)
	c.Aux[ceWeight].F32[r] = weight
	if weight == 0 {
		c.Aux[ceLogits].F32[r], c.Aux[ceTeacher].F32[r], c.Out.F32[r] = 0, 0, 0
		return
	}
	lse := kernel.LogSumExp(s)
	c.Aux[ceLogits].F32[r] = lse
	c.Aux[ceTeacher].F32[r] = 0
	if alpha == 0 {
		c.Out.F32[r] = lse - hard
		return
	}
	t := c.In[x.teacher].F32[r*total : r*total+cols]
	lseT, soft := softMean(t, s, scratch)
	c.Aux[ceTeacher].F32[r] = lseT
	c.Out.F32[r] = (1-alpha)*(lse-hard) + alpha*(lse-soft)
}

// softBlock is the number of teacher probabilities that are made at a time: they
// stay in the first-level cache.
const softBlock = 2048

// softMean returns the log-sum-exp of t and sum_j softmax(t)_j s_j with one look at
// each exponential.
func softMean(t, s, scratch []float32) (lse, mean float32) {
	shift := kernel.Max(t)
	var sum, dot float64
	for lo := 0; lo < len(t); lo += softBlock {
		hi := min(lo+softBlock, len(t))
		e := scratch[:hi-lo]
		sum += float64(kernel.ExpSum(e, t[lo:hi], shift))
		dot += float64(kernel.Dot(e, s[lo:hi]))
	}
	return shift + float32(math.Log(sum)), float32(dot / sum)
}

// hardTarget returns the weight of each positive of row r and the mean of their
// logits.
func (x *crossEntropy) hardTarget(c *exec.Call, r int, s []float32) (weight, mean float32) {
	if x.labels >= 0 {
		l := c.In[x.labels].I32[r]
		if l < 0 {
			return 0, 0
		}
		return 1, s[l]
	}
	n, next := 0, c.Aux[ceNext].I32
	var sum float64
	for j := c.Aux[ceFirst].I32[r]; j >= 0; j = next[j] {
		n++
		sum += float64(s[j])
	}
	if n == 0 {
		return 0, 0
	}
	return float32(1 / float64(n)), float32(sum / float64(n))
}

// keptMean returns the mean of the rows' losses over the rows that were not left
// out, 0 if there is none.
func keptMean() *op {
	o := &op{kind: "mean of kept rows", diff: []bool{true}}
	o.shape = func([]tensor.Shape) (tensor.Shape, error) { return tensor.ScalarShape(), nil }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		return func() error {
			var sum float64
			for _, v := range c.In[0].F32 {
				sum += float64(v)
			}
			c.Out.F32[0] = float32(sum / float64(max(1, countKept(c.InAux[0][ceWeight].F32))))
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{apply(keptMeanGrad(), in[0], dy)}
	}
	return o
}

// keptMeanGrad spreads the gradient of the mean over the rows.
func keptMeanGrad() *op {
	return &op{
		kind: "mean of kept rows dx", diff: []bool{false, false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			return func() error {
				weights := c.InAux[0][ceWeight].F32
				g := c.In[1].F32[0] / float32(max(1, countKept(weights)))
				for i, w := range weights {
					c.Out.F32[i] = 0
					if w != 0 {
						c.Out.F32[i] = g
					}
				}
				return nil
			}, nil
		},
	}
}

func countKept(weights []float32) (n int) {
	for _, w := range weights {
		if w != 0 {
			n++
		}
	}
	return n
}
