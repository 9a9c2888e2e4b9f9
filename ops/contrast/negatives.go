package contrast

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SampleNegatives draws for each of B rows another row of the batch, more often a
// similar one (ALBEF, section 3.2): (B) int32. With logits (B, M), M >= B,
//
//	w_ij = softmax(logits[i, :B])_j + floor, 0 if j is i or has the id of i
//
// and j is drawn with probability w_ij / sum_j w_ij as the argmax of
// log w_ij + noise_ij for noise (B, B) of independent standard Gumbel values
// (Gumbel 1954). Without a floor, 0, log w_ij is the logit but for a constant of the row, so
// that no weight underflows. rowIDs (B) int32 holds the ids, or is nil. byColumn reads the
// transpose: logits[:, i] instead of logits[i, :B].
//
// A row whose logits hold a NaN or +Inf, or of whose negatives each has -Inf, is drawn from
// evenly. A row with no negative at all gets its own index, which the caller must ignore, see NegativeLabels.
func SampleNegatives(logits, noise, rowIDs *gorgonia.Node, byColumn bool, floor float64) *gorgonia.Node {
	in := []*gorgonia.Node{logits, noise}
	if rowIDs != nil {
		in = append(in, rowIDs)
	}
	o := &op.Op{Kind: "sample negatives", Args: fmt.Sprintf("byColumn=%t,floor=%g", byColumn, floor), Ints: true, Diff: make([]bool, len(in))}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 2 && in[0][1] >= in[0][0], "want logits (B, M) with M >= B"); err != nil {
			return nil, err
		}
		b := in[0][0]
		if err := op.All(
			op.Need(b >= 2, "a batch of %d has no negatives: want at least 2", b),
			op.Need(in[1].Eq(tensor.Shape{b, b}), "noise must have shape (%d, %d) (got %v)", b, b, in[1]),
		); err != nil {
			return nil, err
		}
		if len(in) == 3 {
			return tensor.Shape{b}, op.WantShape(in, 2, "row ids", b)
		}
		return tensor.Shape{b}, nil
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * in[0][0] }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, m := c.In[0].Dim(0), c.In[0].Dim(1)
		body := func(worker, lo, hi int) {
			w := c.Scratch[worker*b : (worker+1)*b]
			var ids []int32
			if len(c.In) == 3 {
				ids = c.In[2].I32
			}
			for i := lo; i < hi; i++ {
				if byColumn {
					for j := range w {
						w[j] = c.In[0].F32[j*m+i]
					}
				} else {
					copy(w, c.In[0].F32[i*m:])
				}
				c.Out.I32[i] = int32(drawNegative(w, c.In[1].F32[i*b:(i+1)*b], ids, i, i, floor))
			}
		}
		return func() error {
			c.Engine.For(b, op.RowGrain(16*b), body)
			return nil
		}, nil
	}
	return op.Apply(o, in...)
}

// drawNegative returns the sample of row i among those other than drawn. It overwrites w, the row's logits.
func drawNegative(w, noise []float32, ids []int32, i, drawn int, floor float64) int {
	if floor > 0 {
		vector.Softmax(w, w)
	}
	if !slices.ContainsFunc(w, func(x float32) bool { return x != x || math.IsInf(float64(x), 1) }) {
		if at, best := likeliest(w, noise, ids, i, drawn, floor); !math.IsInf(best, -1) {
			return at
		}
	}
	vector.Fill(w, 1)
	at, _ := likeliest(w, noise, ids, i, drawn, floor)
	return at
}

// likeliest returns the negative of row i with the largest sum of log weight and noise, and
// the sum, drawn left out; i where there is none. w holds probabilities, or without a floor logits.
func likeliest(w, noise []float32, ids []int32, i, drawn int, floor float64) (at int, best float64) {
	at, best = i, math.Inf(-1)
	for j, x := range w {
		if j == i || j == drawn || ids != nil && ids[j] == ids[i] {
			continue
		}
		l := float64(x)
		if floor > 0 {
			l = math.Log(l + floor)
		}
		if v := l + float64(noise[j]); v > best || at == i {
			best, at = v, j
		}
	}
	return at, best
}

// NegativeLabels returns the labels of the pairs that SampleNegatives drew as idx
// (B): 0, no match, where a negative was found, and -100, left out, where idx[i]
// is i. (B) int32.
func NegativeLabels(idx *gorgonia.Node) *gorgonia.Node {
	return op.Apply(op.IntsOp("negative labels", 1, op.SameInts, func(c *exec.Call) error {
		for i, j := range c.In[0].I32 {
			c.Out.I32[i] = 0
			if int(j) == i {
				c.Out.I32[i] = -100
			}
		}
		return nil
	}), idx)
}
