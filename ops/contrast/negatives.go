package contrast

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
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
	return sampleNegatives(logits, noise, rowIDs, nil, byColumn, floor)
}

// SampleNegativesOf is SampleNegatives of R rows of a batch of B, which own (R) int32 names: logits (R, M) with M >= B,
// noise (R, B), ids (B) int32 or nil. The result, (R) int32, names rows of the batch.
func SampleNegativesOf(logits, noise, ids, own *gorgonia.Node, floor float64) *gorgonia.Node {
	return sampleNegatives(logits, noise, ids, own, false, floor)
}

func sampleNegatives(logits, noise, ids, own *gorgonia.Node, byColumn bool, floor float64) *gorgonia.Node {
	in := op.Operands{logits, noise}
	idsAt, ownAt := in.Add(ids), in.Add(own)
	o := &op.Op{Kind: "sample negatives",
		Args: fmt.Sprintf("byColumn=%t,floor=%g,ids=%d,own=%d", byColumn, floor, idsAt, ownAt), Ints: true,
		Diff: make([]bool, len(in))}
	o.On = oncuda.SampleNegatives(idsAt, ownAt, byColumn, floor)
	batch := func(in []tensor.Shape) int { // B
		if ownAt >= 0 && len(in[1]) == 2 {
			return in[1][1]
		}
		return in[0][0]
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 2 && in[0][1] >= batch(in), "want logits (B, M) with M >= B"); err != nil {
			return nil, err
		}
		r, b := in[0][0], batch(in)
		errs := []error{
			op.Need(b >= 2, "a batch of %d has no negatives: want at least 2", b),
			op.Need(in[1].Eq(tensor.Shape{r, b}), "noise must have shape (%d, %d) (got %v)", r, b, in[1]),
		}
		if idsAt >= 0 {
			errs = append(errs, op.WantShape(in, idsAt, "row ids", b))
		}
		if ownAt >= 0 {
			errs = append(errs, op.WantShape(in, ownAt, "own rows", r))
		}
		return tensor.Shape{r}, op.All(errs...)
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * batch(in) }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		r, m, b := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(1)
		body := func(worker, lo, hi int) {
			w := c.Scratch[worker*b : (worker+1)*b]
			var ids []int32
			if idsAt >= 0 {
				ids = c.In[idsAt].I32
			}
			for i := lo; i < hi; i++ {
				at := i
				if ownAt >= 0 {
					at = int(c.In[ownAt].I32[i])
				}
				if byColumn {
					for j := range w {
						w[j] = c.In[0].F32[j*m+i]
					}
				} else {
					copy(w, c.In[0].F32[i*m:])
				}
				c.Out.I32[i] = int32(drawNegative(w, c.In[1].F32[i*b:(i+1)*b], ids, at, at, floor))
			}
		}
		return func() error {
			if ownAt >= 0 {
				for _, at := range c.In[ownAt].I32 {
					if at < 0 || int(at) >= b {
						return fmt.Errorf("ops: sample negatives: own row %d: want [0, %d)", at, b)
					}
				}
			}
			c.Engine.For(r, op.RowGrain(16*b), body)
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
	o := op.IntsOp("negative labels", 1, op.SameInts, func(c *exec.Call) error {
		for i, j := range c.In[0].I32 {
			c.Out.I32[i] = 0
			if int(j) == i {
				c.Out.I32[i] = -100
			}
		}
		return nil
	})
	o.On = oncuda.NegativeLabels
	return op.Apply(o, idx)
}

// NegativeLabelsOf is NegativeLabels of the rows of a batch that own (R) int32 names.
func NegativeLabelsOf(idx, own *gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		return in[0].Clone(), op.Need(len(in[0]) == 1 && in[0].Eq(in[1]),
			"want as many negatives as rows (got %v and %v)", in[0], in[1])
	}
	o := op.IntsOp("negative labels", 2, shape, func(c *exec.Call) error {
		for i, j := range c.In[0].I32 {
			c.Out.I32[i] = 0
			if j == c.In[1].I32[i] {
				c.Out.I32[i] = -100
			}
		}
		return nil
	})
	o.On = oncuda.NegativeLabelsOf
	return op.Apply(o, idx, own)
}
