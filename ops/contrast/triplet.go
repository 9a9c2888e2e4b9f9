package contrast

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Triplets says which triplets of an anchor a, a positive p of its id and a negative n of another
// have a loss, and what loss:
//
//	(margin + s_an - s_ap)_+    or with Soft    log(1 + exp(s_an - s_ap))
//
// for scores s, which are larger for what is nearer.
type Triplets struct {
	Hardest bool    // the farthest positive and the nearest negative of each anchor alone, else all triplets
	Soft    bool    // the soft margin, which has no width
	Margin  float64 // of no meaning to the soft margin
}

// Triplet returns the mean loss of the triplets of rows whose scores with each other are s (B, B), with
// ids (B) int32 (Hermans et al. 2017, "In Defense of the Triplet Loss", "batch hard" and "batch all"): over
// the anchors, or over all triplets whether they have a loss or not. An anchor without a positive, or without a
// negative, is left out; without any other the loss is 0. The gradient goes to s.
func Triplet(scores, ids *gorgonia.Node, t Triplets) *gorgonia.Node {
	return op.Apply(t.forward(), scores, ids)
}

// TripletAnchors returns how many rows of ids (B) int32 have a positive and a negative, a scalar.
func TripletAnchors(ids *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "triplet anchors", Diff: []bool{false}, On: oncuda.TripletAnchors(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.ScalarShape(), op.Need(len(in[0]) == 1, "want ids (B) (got %v)", in[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return func() error {
				anchors, _ := tripletsOf(c.In[0].I32)
				c.Out.F32[0] = float32(anchors)
				return nil
			}, nil
		},
	}, ids)
}

// tripletsOf counts the rows with a positive and a negative, and the triplets.
func tripletsOf(ids []int32) (anchors, triplets int) {
	for _, a := range ids {
		same := 0
		for _, b := range ids {
			if a == b {
				same++
			}
		}
		if n := (same - 1) * (len(ids) - same); n > 0 {
			anchors++
			triplets += n
		}
	}
	return anchors, triplets
}

// args tell variants apart.
func (t Triplets) args() string {
	if t.Soft {
		return fmt.Sprintf("hardest=%t soft", t.Hardest)
	}
	return fmt.Sprintf("hardest=%t margin=%g", t.Hardest, t.Margin)
}

// value returns the loss of a triplet by the difference d = s_an - s_ap, and its derivative.
func (t Triplets) value(d float64) (loss, slope float64) {
	if t.Soft {
		return max(d, 0) + math.Log1p(math.Exp(-math.Abs(d))), 1 / (1 + math.Exp(-d))
	}
	if v := t.Margin + d; v > 0 {
		return v, 1
	}
	return 0, 0
}

// each calls f with the positives and negatives of the triplets of anchor a.
func (t Triplets) each(s []float32, ids []int32, a int, f func(p, n int)) {
	if t.Hardest {
		p, n := -1, -1
		for j, v := range s {
			switch {
			case ids[j] != ids[a]:
				if n < 0 || v > s[n] {
					n = j
				}
			case j != a && (p < 0 || v < s[p]):
				p = j
			}
		}
		if p >= 0 && n >= 0 {
			f(p, n)
		}
		return
	}
	for p := range s {
		if p == a || ids[p] != ids[a] {
			continue
		}
		for n := range s {
			if ids[n] != ids[a] {
				f(p, n)
			}
		}
	}
}

// over is the number of triplets that the mean is over, at least 1.
func (t Triplets) over(ids []int32) float64 {
	anchors, triplets := tripletsOf(ids)
	if t.Hardest {
		triplets = anchors
	}
	return float64(max(1, triplets))
}

func (t Triplets) forward() *op.Op {
	o := &op.Op{
		Kind: "triplet", Args: t.args(), Diff: []bool{true, false}, On: oncuda.Triplets(t).Forward(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && in[0][0] == in[0][1], "want scores (B, B) (got %v)",
				in[0]); err != nil {
				return nil, err
			}
			return tensor.ScalarShape(), op.WantShape(in, 1, "ids", in[0][0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			b := c.In[0].Dim(0)
			losses := make([]float64, b)
			body := func(_, lo, hi int) {
				for a := lo; a < hi; a++ {
					sum, s := 0., c.In[0].F32[a*b:][:b]
					t.each(s, c.In[1].I32, a, func(p, n int) {
						v, _ := t.value(float64(s[n]) - float64(s[p]))
						sum += v
					})
					losses[a] = sum
				}
			}
			return func() error {
				c.Engine.For(b, op.RowGrain(8*b), body)
				sum := 0.
				for _, v := range losses {
					sum += v
				}
				c.Out.F32[0] = float32(sum / t.over(c.In[1].I32))
				return nil
			}, nil
		},
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{op.Apply(t.backward(), in[0], in[1], dy), nil}
	}
	return o
}

// backward is the gradient of the scores; the last operand is that of the loss.
func (t Triplets) backward() *op.Op {
	return &op.Op{
		Kind: "triplet ds", Args: t.args(), Diff: make([]bool, 3), On: oncuda.Triplets(t).Backward(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			b := c.In[0].Dim(0)
			var g float64
			body := func(_, lo, hi int) {
				for a := lo; a < hi; a++ {
					s, ds := c.In[0].F32[a*b:][:b], c.Out.F32[a*b:][:b]
					clear(ds)
					t.each(s, c.In[1].I32, a, func(p, n int) {
						_, v := t.value(float64(s[n]) - float64(s[p]))
						ds[n] += float32(g * v)
						ds[p] -= float32(g * v)
					})
				}
			}
			return func() error {
				g = float64(c.In[2].F32[0]) / t.over(c.In[1].I32)
				c.Engine.For(b, op.RowGrain(8*b), body)
				return nil
			}, nil
		},
	}
}
