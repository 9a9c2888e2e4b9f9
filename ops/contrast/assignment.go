package contrast

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// SamplePairs draws for each of B rows two other rows of the batch, different ones, as SampleNegatives draws one of
// logits (B, B) by rows and without a floor: (2B) int32, the first of all rows and behind them the second. A row with
// one negative gets its own index as the second.
func SamplePairs(logits, noise, rowIDs *gorgonia.Node) *gorgonia.Node {
	in := []*gorgonia.Node{logits, noise}
	if rowIDs != nil {
		in = append(in, rowIDs)
	}
	o := &op.Op{Kind: "sample pairs", Ints: true, Diff: make([]bool, len(in)), On: oncuda.SamplePairs}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 2 && in[0][0] >= 2 && in[0][0] == in[0][1],
			"want logits (B, B) of two rows or more"); err != nil {
			return nil, err
		}
		b := in[0][0]
		if err := op.WantShape(in, 1, "noise", b, b); err != nil {
			return nil, err
		}
		if len(in) == 3 {
			return tensor.Shape{2 * b}, op.WantShape(in, 2, "row ids", b)
		}
		return tensor.Shape{2 * b}, nil
	}
	o.Scratch = func(in []tensor.Shape, threads int) int { return threads * in[0][0] }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b := c.In[0].Dim(0)
		return c.For(b, op.RowGrain(32*b), func(worker, lo, hi int) {
			w := c.Scratch[worker*b : (worker+1)*b]
			var ids []int32
			if len(c.In) == 3 {
				ids = c.In[2].I32
			}
			for i := lo; i < hi; i++ {
				drawn := i
				for k := range 2 {
					copy(w, c.In[0].F32[i*b:])
					drawn = drawNegative(w, c.In[1].F32[i*b:(i+1)*b], ids, i, drawn, 0)
					c.Out.I32[k*b+i] = int32(drawn)
				}
			}
		})
	}
	return op.Apply(o, in...)
}

// Answers of text assignment: which of two pictures a text is of.
const (
	AssignedFirst = iota
	AssignedSecond
	AssignedNone
	Assignments
)

// AssignedPictures returns picture 0 or 1 of each text (B) int32, where sampled (2B) is what SamplePairs gives and
// answers (B) says which of the two is the text's own, row i for text i. The other one is its first negative, and of
// AssignedNone both are negatives.
func AssignedPictures(sampled, answers *gorgonia.Node, picture int) *gorgonia.Node {
	o := op.IntsOp("assigned pictures", 2, assignmentShape, func(c *exec.Call) error {
		first, second := c.In[0].I32[:c.Out.Len()], c.In[0].I32[c.Out.Len():]
		for i, answer := range c.In[1].I32 {
			switch {
			case int(answer) == picture:
				c.Out.I32[i] = int32(i)
			case int(answer) == AssignedNone && picture == 1:
				c.Out.I32[i] = second[i]
			default:
				c.Out.I32[i] = first[i]
			}
		}
		return nil
	})
	o.Args, o.On = fmt.Sprintf("picture=%d", picture), oncuda.AssignedPictures(picture, AssignedNone)
	return op.Apply(o, sampled, answers)
}

// AssignmentLabels returns the answers (B) of the texts of AssignedPictures, and -100, left out, where there are fewer
// negatives than the answer takes.
func AssignmentLabels(sampled, answers *gorgonia.Node) *gorgonia.Node {
	o := op.IntsOp("assignment labels", 2, assignmentShape, func(c *exec.Call) error {
		first, second := c.In[0].I32[:c.Out.Len()], c.In[0].I32[c.Out.Len():]
		for i, answer := range c.In[1].I32 {
			c.Out.I32[i] = answer
			if int(first[i]) == i || int(answer) == AssignedNone && int(second[i]) == i {
				c.Out.I32[i] = -100
			}
		}
		return nil
	})
	o.On = oncuda.AssignmentLabels(AssignedNone)
	return op.Apply(o, sampled, answers)
}

// assignmentShape is (B) for sampled (2B) and answers (B).
func assignmentShape(in []tensor.Shape) (tensor.Shape, error) {
	return in[1].Clone(), op.Need(len(in[0]) == 1 && len(in[1]) == 1 && in[0][0] == 2*in[1][0],
		"want samples (2B) and answers (B) (got %v and %v)", in[0], in[1])
}
