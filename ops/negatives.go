package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// negativeFloor is added to every probability before sampling, so that a row
// whose softmax underflows everywhere but at its positive still has negatives.
const negativeFloor = 1e-4

// SampleNegatives draws for each of B rows another row of the batch, more often a
// similar one (ALBEF, section 3.2): (B) int32. With logits (B, M), M >= B,
//
//	w_ij = softmax(logits[i, :B])_j + 1e-4, 0 if j is i or has the id of i
//
// and j is drawn with probability w_ij / sum_j w_ij as the argmax of
// log w_ij + noise_ij for noise (B, B) of independent standard Gumbel values
// (Gumbel 1954). rowIDs (B) int32 holds the ids, or is nil. byColumn reads the
// transpose: logits[:, i] instead of logits[i, :B].
//
// A row whose logits hold a NaN or +Inf is drawn from evenly. A row with no negative
// at all gets its own index, which the caller must ignore, see NegativeLabels.
func SampleNegatives(logits, noise, rowIDs *gorgonia.Node, byColumn bool) *gorgonia.Node {
	in := []*gorgonia.Node{logits, noise}
	if rowIDs != nil {
		in = append(in, rowIDs)
	}
	o := &op{kind: "sample negatives", args: fmt.Sprintf("byColumn=%t", byColumn), ints: true, diff: make([]bool, len(in))}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := need(len(in[0]) == 2 && in[0][1] >= in[0][0], "want logits (B, M) with M >= B"); err != nil {
			return nil, err
		}
		b := in[0][0]
		if err := all(
			need(b >= 2, "a batch of %d has no negatives: want at least 2", b),
			need(in[1].Eq(tensor.Shape{b, b}), "noise must have shape (%d, %d) (got %v)", b, b, in[1]),
		); err != nil {
			return nil, err
		}
		if len(in) == 3 {
			return tensor.Shape{b}, wantShape(in, 2, "row ids", b)
		}
		return tensor.Shape{b}, nil
	}
	o.scratch = func(in []tensor.Shape, threads int) int { return threads * in[0][0] }
	o.prepare = func(c *exec.Call) (exec.Step, error) {
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
				c.Out.I32[i] = int32(drawNegative(w, c.In[1].F32[i*b:(i+1)*b], ids, i))
			}
		}
		return func() error {
			c.Engine.For(b, grainRows(16*b), body)
			return nil
		}, nil
	}
	return apply(o, in...)
}

// drawNegative returns the sample of row i. It overwrites w, the row's logits.
func drawNegative(w, noise []float32, ids []int32, i int) int {
	// NaN also if the largest logit is infinite.
	if lse := kernel.Softmax(w, w); lse != lse || math.IsInf(float64(lse), 0) {
		kernel.Fill(w, 1)
	}
	best, at := math.Inf(-1), i
	for j, p := range w {
		if j == i || ids != nil && ids[j] == ids[i] {
			continue
		}
		if v := math.Log(float64(p)+negativeFloor) + float64(noise[j]); v > best || at == i {
			best, at = v, j
		}
	}
	return at
}

// NegativeLabels returns the labels of the pairs that SampleNegatives drew as idx
// (B): 0, no match, where a negative was found, and -100, left out, where idx[i]
// is i. (B) int32.
func NegativeLabels(idx *gorgonia.Node) *gorgonia.Node {
	return apply(intsOp("negative labels", 1, sameInts, func(c *exec.Call) error {
		for i, j := range c.In[0].I32 {
			c.Out.I32[i] = 0
			if int(j) == i {
				c.Out.I32[i] = -100
			}
		}
		return nil
	}), idx)
}

// IotaInts returns 0, 1, ... as int32, one for each row (first axis) of like:
// (R). The values of like do not matter.
func IotaInts(like *gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if err := need(len(in[0]) > 0, "want at least one axis"); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0]}, nil
	}
	return apply(intsOp("iota", 1, shape, func(c *exec.Call) error {
		for i := range c.Out.I32 {
			c.Out.I32[i] = int32(i)
		}
		return nil
	}), like)
}

// ConcatInts joins int32 vectors end to end.
func ConcatInts(xs ...*gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		if len(in) == 0 {
			return nil, fmt.Errorf("want at least one vector")
		}
		n := 0
		for i, s := range in {
			if err := need(len(s) == 1, "operand %d must be a vector (got %v)", i, s); err != nil {
				return nil, err
			}
			n += s[0]
		}
		return tensor.Shape{n}, nil
	}
	return apply(intsOp("concat ints", len(xs), shape, func(c *exec.Call) error {
		out := c.Out.I32
		for _, x := range c.In {
			out = out[copy(out, x.I32):]
		}
		return nil
	}), xs...)
}

// GatherInts returns x[idx[r]] for x (N) and idx (R), both int32: (R). An index
// outside of x is an error of the run.
func GatherInts(x, idx *gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		return in[1].Clone(), need(len(in[0]) == 1 && len(in[1]) == 1, "want two vectors")
	}
	return apply(intsOp("gather ints", 2, shape, func(c *exec.Call) error {
		x := c.In[0].I32
		for r, i := range c.In[1].I32 {
			if i < 0 || int(i) >= len(x) {
				return fmt.Errorf("ops: gather ints: index %d at %d: want [0, %d)", i, r, len(x))
			}
			c.Out.I32[r] = x[i]
		}
		return nil
	}), x, idx)
}

// intsOp returns an op with an int32 result and no gradient.
func intsOp(kind string, operands int, shape func([]tensor.Shape) (tensor.Shape, error), run func(c *exec.Call) error) *op {
	return &op{
		kind: kind, ints: true, diff: make([]bool, operands), shape: shape,
		prepare: func(c *exec.Call) (exec.Step, error) {
			return func() error { return run(c) }, nil
		},
	}
}

// sameInts is the shape function of an op on one vector.
func sameInts(in []tensor.Shape) (tensor.Shape, error) {
	return in[0].Clone(), need(len(in[0]) == 1, "want a vector (got %v)", in[0])
}
