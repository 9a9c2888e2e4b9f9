package contrast

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// forward is the op of the rows' losses.
func (x *crossEntropy) forward() *op.Op {
	o := &op.Op{Kind: "cross entropy", Args: x.args(), Shape: x.shape, Aux: x.aux, Diff: make([]bool, x.operands),
		On: x.onCUDA().Forward()}
	o.Diff[0] = true
	o.Scratch = func(in []tensor.Shape, _ int) int { return in[0][0] * chain.Blocks(in[0][1]) * cePartials }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		rows, total := c.In[0].Dim(0), c.In[0].Dim(1)
		cols, blocks, alpha, uniform := 0, 0, float32(0), float32(0)
		kept := make([]int32, 0, rows)
		hard := func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				c.Aux[ceWeight].F32[r], c.Out.F32[r] = x.hardTarget(c, r, c.In[0].F32[r*total:r*total+cols])
			}
		}
		part := func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				x.partial(c, int(kept[i/blocks]), i%blocks, total, cols, blocks, alpha, uniform)
			}
		}
		loss := func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				x.rowLoss(c, r, blocks, cols, alpha, uniform)
			}
		}
		ids := x.newMatch(c)
		return func() (err error) {
			if cols, err = x.numCols(c, total); err != nil {
				return err
			}
			blocks, alpha, uniform = chain.Blocks(cols), x.weight(c), x.share(c)
			if err := x.targets(c, cols, ids); err != nil {
				return err
			}
			c.Engine.For(rows, 256, hard)
			kept = kept[:0] // rows that are left out would be another thread's rest
			for r, w := range c.Aux[ceWeight].F32 {
				if w != 0 {
					kept = append(kept, int32(r))
				}
			}
			c.Engine.For(len(kept)*blocks, 2, part)
			c.Engine.For(rows, 16, loss)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, x.operands)
		grads[0] = op.Apply(x.backward(), append(append(gorgonia.Nodes{}, in...), out, dy)...)
		return grads
	}
	return o
}

// targets checks the labels, or links the columns of each id.
func (x *crossEntropy) targets(c *exec.Call, cols int, ids *chain.Match) error {
	if x.extra >= 0 {
		for r, e := range c.In[x.extra].I32 {
			if int(e) >= cols {
				return fmt.Errorf("ops: cross entropy: extra positive %d of row %d: want less than %d columns", e, r,
					cols)
			}
		}
	}
	if x.labels < 0 {
		ids.Run(c.Engine, c.In[x.rowIDs].I32, c.In[x.colIDs].I32[:cols])
		return nil
	}
	for r, l := range c.In[x.labels].I32 {
		if int(l) >= cols {
			return fmt.Errorf("ops: cross entropy: label %d of row %d: want less than %d columns", l, r, cols)
		}
	}
	return nil
}

// newMatch returns what links the columns, nil with labels.
func (x *crossEntropy) newMatch(c *exec.Call) *chain.Match {
	if x.labels >= 0 {
		return nil
	}
	return chain.New(chain.Chains{First: c.Aux[ceFirst].I32, Next: c.Aux[ceNext].I32, Table: c.Aux[ceTable].I32})
}

// Partial results of a row in a block of columns.
const (
	ceShift        = iota // m, about the largest logit
	ceSum                 // sum_j exp(s_j - m)
	ceShiftTeacher        // n, about the largest logit of the teacher
	ceSumTeacher          // sum_j exp(t_j - n)
	ceDot                 // sum_j exp(t_j - n) s_j
	ceTotal               // sum_j s_j, with a uniform share
	cePartials
)

// partial looks at block b of the columns of row r. The teacher's probabilities are
// never stored.
func (x *crossEntropy) partial(c *exec.Call, r, b, total, cols, blocks int, alpha, uniform float32) {
	p := c.Scratch[(r*blocks+b)*cePartials:][:cePartials]
	lo, hi := r*total+b*chain.Block, r*total+min((b+1)*chain.Block, cols)
	s := c.In[0].F32[lo:hi]
	var top float32
	p[ceShift] = guess(s)
	if p[ceSum], top = vector.SumExpMax(s, p[ceShift]); !withinRange(top) {
		p[ceShift], p[ceSum] = vector.Max(s), 0
		if p[ceShift] != minusInf {
			p[ceSum] = vector.SumExp(s, p[ceShift])
		}
	}
	if uniform != 0 {
		p[ceTotal] = vector.Sum(s)
	}
	if alpha == 0 {
		return
	}
	t := c.In[x.teacher].F32[lo:hi]
	p[ceShiftTeacher] = guess(t)
	if p[ceSumTeacher], p[ceDot], top = vector.SumExpDotMax(t, s, p[ceShiftTeacher]); !withinRange(top) {
		p[ceShiftTeacher], p[ceSumTeacher], p[ceDot] = vector.Max(t), 0, 0
		if p[ceShiftTeacher] != minusInf {
			p[ceSumTeacher], p[ceDot], _ = vector.SumExpDotMax(t, s, p[ceShiftTeacher])
		}
	}
}

// guess returns the largest of the first values of x, so that one pass over x is enough
// if it is near the largest of all.
func guess(x []float32) float32 { return vector.Max(x[:min(len(x), 64)]) }

// withinRange reports whether exponentials of values, the largest of which is top, neither
// overflow in a sum nor lose digits.
func withinRange(top float32) bool { return top > -20 && top < 60 }

var minusInf = float32(math.Inf(-1))

// rowLoss puts the partial results of row r together:
//
//	lse(s) - (1-alpha)*mean_{j positive} s_j - alpha*sum_j softmax(t)_j s_j
//
// and, with a uniform share u, (1-u) times that and u times lse(s) - mean_j s_j. The
// output holds the mean of the positives before.
func (x *crossEntropy) rowLoss(c *exec.Call, r, blocks, cols int, alpha, uniform float32) {
	c.Aux[ceLogits].F32[r], c.Aux[ceTeacher].F32[r] = 0, 0
	if c.Aux[ceWeight].F32[r] == 0 {
		c.Out.F32[r] = 0
		return
	}
	parts := c.Scratch[r*blocks*cePartials : (r+1)*blocks*cePartials]
	lse, _ := merge(parts, ceShift, ceSum, ceSum)
	c.Aux[ceLogits].F32[r] = lse
	hard := c.Out.F32[r]
	if alpha == 0 {
		c.Out.F32[r] = lse - hard
	} else {
		lseT, soft := merge(parts, ceShiftTeacher, ceSumTeacher, ceDot)
		c.Aux[ceTeacher].F32[r] = lseT
		c.Out.F32[r] = (1-alpha)*(lse-hard) + alpha*(lse-soft)
	}
	if uniform == 0 {
		return
	}
	var sum float64
	for p := parts; len(p) > 0; p = p[cePartials:] {
		sum += float64(p[ceTotal])
	}
	c.Out.F32[r] = (1-uniform)*c.Out.F32[r] + uniform*(lse-float32(sum/float64(cols)))
}

// merge returns log sum exp of a row from the shifts and sums of its blocks, and the
// mean that the dots are the terms of.
func merge(parts []float32, shiftAt, sumAt, dotAt int) (lse, mean float32) {
	top := minusInf
	for p := parts; len(p) > 0; p = p[cePartials:] {
		top = max(top, p[shiftAt])
	}
	if math.IsInf(float64(top), 0) {
		return top, float32(math.NaN())
	}
	var sum, dot float64
	for p := parts; len(p) > 0; p = p[cePartials:] {
		if p[sumAt] != 0 {
			f := math.Exp(float64(p[shiftAt] - top))
			sum += f * float64(p[sumAt])
			dot += f * float64(p[dotAt])
		}
	}
	return float32(float64(top) + math.Log(sum)), float32(dot / sum)
}

// hardTarget returns the weight of each positive of row r and the mean of their
// logits.
func (x *crossEntropy) hardTarget(c *exec.Call, r int, s []float32) (weight, mean float32) {
	if x.labels >= 0 {
		l := c.In[x.labels].I32[r]
		if l < 0 {
			return 0, 0
		}
		if e := x.further(c, r); e >= 0 {
			return .5, (s[l] + s[e]) / 2
		}
		return 1, s[l]
	}
	n, next := 0, c.Aux[ceNext].I32
	var sum float64
	for j := c.Aux[ceFirst].I32[r]; j >= 0; j = next[j] {
		n++
		sum += float64(s[j])
	}
	if e := x.further(c, r); e >= 0 {
		n++
		sum += float64(s[e])
	}
	if n == 0 {
		return 0, 0
	}
	return float32(1 / float64(n)), float32(sum / float64(n))
}

// keptMean returns the mean of the rows' losses over the rows that were not left
// out, 0 if there is none.
func keptMean() *op.Op {
	o := &op.Op{Kind: "mean of kept rows", Diff: []bool{true}, On: oncuda.KeptMean}
	o.Shape = func([]tensor.Shape) (tensor.Shape, error) { return tensor.ScalarShape(), nil }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		return func() error {
			var sum float64
			for _, v := range c.In[0].F32 {
				sum += float64(v)
			}
			c.Out.F32[0] = float32(sum / float64(max(1, countKept(c.InAux[0][ceWeight].F32))))
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{op.Apply(keptMeanGrad(), in[0], dy)}
	}
	return o
}

// keptMeanGrad spreads the gradient of the mean over the rows.
func keptMeanGrad() *op.Op {
	return &op.Op{
		Kind: "mean of kept rows dx", Diff: []bool{false, false}, On: oncuda.KeptMeanGrad,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
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
