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

// HardestNegatives returns, for each of B rows of logits (B, M), M >= B, the column
// below B with the largest logit and the one with the second largest, each (B) int32,
// where row i's own column i and columns with its id are left out (rowIDs (B) int32 or
// nil). Of equal logits the first counts, and one that is NaN never does. Where there is
// no such column the result is the row's own index i, see NegativeLabels.
func HardestNegatives(logits, rowIDs *gorgonia.Node) (first, second *gorgonia.Node) {
	in := []*gorgonia.Node{logits}
	if rowIDs != nil {
		in = append(in, rowIDs)
	}
	o := &op.Op{Kind: "hardest negatives", Ints: true, Diff: make([]bool, len(in)), On: oncuda.HardestNegatives}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 2 && in[0][1] >= in[0][0], "want logits (B, M) with M >= B"); err != nil {
			return nil, err
		}
		if len(in) == 2 {
			return tensor.Shape{in[0][0]}, op.WantShape(in, 1, "row ids", in[0][0])
		}
		return tensor.Shape{in[0][0]}, nil
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0]}, Int: true}}
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, m := c.In[0].Dim(0), c.In[0].Dim(1)
		return c.For(b, op.RowGrain(4*b), func(_, lo, hi int) {
			var ids []int32
			if len(c.In) == 2 {
				ids = c.In[1].I32
			}
			for i := lo; i < hi; i++ {
				c.Out.I32[i], c.Aux[0].I32[i] = hardest(c.In[0].F32[i*m:i*m+b], ids, i)
			}
		})
	}
	first = op.Apply(o, in...)
	return first, takeInts(first, 0, first.Shape())
}

// hardest returns the columns with the two largest values of row i, i where there is none.
func hardest(s []float32, ids []int32, i int) (first, second int32) {
	first, second = int32(i), int32(i)
	a, b := math.Inf(-1), math.Inf(-1)
	for j, x := range s {
		v := float64(x)
		if j == i || v != v || ids != nil && ids[j] == ids[i] {
			continue
		}
		switch {
		case v > a || first == int32(i):
			b, second = a, first
			a, first = v, int32(j)
		case v > b || second == int32(i):
			b, second = v, int32(j)
		}
	}
	return first, second
}

// takeInts is op.Take for an int32 auxiliary result.
func takeInts(n *gorgonia.Node, aux int, shape tensor.Shape) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "take", Args: fmt.Sprintf("ints aux=%d shape=%v", aux, shape), Ints: true, Diff: []bool{false},
		Alias: &[2]int{0, aux},
		Shape: func([]tensor.Shape) (tensor.Shape, error) { return shape.Clone(), nil },
	}, n)
}

// Relabelled is what Relabel makes of the hardest negatives.
type Relabelled struct {
	Index     *gorgonia.Node // (B) int32, what to pair each row with
	Labels    *gorgonia.Node // (B) int32: 1 match, 0 no match, -100 left out
	Positive  *gorgonia.Node // (B) int32: Index where the label is 1, -1 elsewhere
	Positives *gorgonia.Node // scalar, how many rows became positives
	Replaced  *gorgonia.Node // scalar, how many rows took their second hardest
}

// Relabel judges the hardest negatives first (B) int32 by the logits (B, 2) that a model
// gives to their pairs, class 1 meaning match (Byun et al. 2023, MAFA).
// With p = softmax(logits)_1,
//
//	p > above           first, label 1
//	p < below           first, label 0
//	otherwise           second, label 0
//
// A row whose index is its own has no negative and is left out, and so is one to be
// replaced without a second hardest.
func Relabel(first, second, logits *gorgonia.Node, above, below float64) Relabelled {
	o := &op.Op{Kind: "relabel", Args: fmt.Sprintf("above=%v below=%v", above, below), Ints: true,
		Diff: make([]bool, 3), On: oncuda.Relabel(above, below)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.All(
			op.Need(len(in[0]) == 1, "want indices (B) (got %v)", in[0]),
			op.Need(below <= above, "the lower bound %v must not be above the upper one %v", below, above),
		); err != nil {
			return nil, err
		}
		b := in[0][0]
		return in[0].Clone(), op.All(op.WantShape(in, 1, "second hardest", b), op.WantShape(in, 2, "logits", b, 2))
	}
	o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
		return []exec.AuxSpec{{Shape: in[0].Clone(), Int: true}, {Shape: in[0].Clone(), Int: true},
			{Shape: tensor.ScalarShape()}, {Shape: tensor.ScalarShape()}}
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		return func() error {
			positives, replaced := float32(0), float32(0)
			for i, j := range c.In[0].I32 {
				index, label, positive := j, int32(0), int32(-1)
				p := 1 / (1 + math.Exp(float64(c.In[2].F32[2*i]-c.In[2].F32[2*i+1])))
				switch {
				case int(j) == i || p < below:
				case p > above:
					label, positive = 1, j
					positives++
				default:
					index = c.In[1].I32[i]
					replaced++
				}
				if int(index) == i {
					label = -100
				}
				c.Out.I32[i], c.Aux[0].I32[i], c.Aux[1].I32[i] = index, label, positive
			}
			c.Aux[2].F32[0], c.Aux[3].F32[0] = positives, replaced
			return nil
		}, nil
	}
	n := op.Apply(o, first, second, logits)
	return Relabelled{
		Index: n, Labels: takeInts(n, 0, n.Shape()), Positive: takeInts(n, 1, n.Shape()),
		Positives: op.Take(n, 2, tensor.ScalarShape()), Replaced: op.Take(n, 3, tensor.ScalarShape()),
	}
}

// LookUpColumns returns columns[idx[i]] for columns (N) and idx (B), both int32, and -1
// where idx[i] is negative: (B). It turns rows of a batch into columns of a pool.
func LookUpColumns(columns, idx *gorgonia.Node) *gorgonia.Node {
	shape := func(in []tensor.Shape) (tensor.Shape, error) {
		return in[1].Clone(), op.Need(len(in[0]) == 1 && len(in[1]) == 1, "want two vectors")
	}
	o := op.IntsOp("look up columns", 2, shape, func(c *exec.Call) error {
		columns := c.In[0].I32
		for i, j := range c.In[1].I32 {
			switch {
			case j < 0:
				c.Out.I32[i] = -1
			case int(j) >= len(columns):
				return fmt.Errorf("ops: look up columns: index %d at %d: want less than %d", j, i, len(columns))
			default:
				c.Out.I32[i] = columns[j]
			}
		}
		return nil
	})
	o.On = oncuda.LookUpColumns
	return op.Apply(o, columns, idx)
}
