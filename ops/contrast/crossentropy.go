package contrast

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast/internal/oncuda"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// CrossEntropyArgs are the operands of CrossEntropy: logits s of R rows and V
// columns, and what each row's target y is made of. Exactly one kind of hard
// target must be set: Labels, or RowIDs with ColIDs.
type CrossEntropyArgs struct {
	// Logits is s (R, V).
	Logits *gorgonia.Node
	// Labels (R) int32 is the right column of each row; a negative one leaves
	// the row out.
	Labels *gorgonia.Node
	// RowIDs (R) and ColIDs (V), int32, make every column with the row's id a
	// positive: the hard target is [id_i == id_j] / sum_j [id_i == id_j].
	// Row ids are not negative, so a column with a negative
	// id, such as the -100 of an unfilled queue entry, is never a positive. A row
	// without a positive is left out.
	RowIDs, ColIDs *gorgonia.Node
	// Extra (R) int32 is a further positive column of each row, negative for none; all
	// positives of a row have equal weights. A row that Labels leave out stays so. nil
	// means none.
	Extra *gorgonia.Node
	// Uniform is the scalar share u of the uniform distribution over the columns in the
	// target, in [0, 1]; nil means 0.
	Uniform *gorgonia.Node
	// Teacher (R, V) adds the soft target softmax(teacher); nil means none.
	Teacher *gorgonia.Node
	// Alpha is the scalar weight of the soft target, in [0, 1]. It must be set
	// with Teacher, and only then. A run with 0 does not read the teacher.
	Alpha *gorgonia.Node
	// Cols is a scalar int32 with the number of columns that exist, the first
	// ones, or nil for all.
	Cols *gorgonia.Node
}

// CrossEntropy returns the scalar
//
//	mean_i -sum_j y_ij log softmax(s)_ij,  y = (1-alpha)*hard + alpha*softmax(teacher)
//
// with y replaced by (1-u)*y + u/V, V the columns that exist, where Uniform is set,
// over the rows that are not left out (eq. 6 and 7 of ALBEF, Li et al. 2021); 0 if all are.
// The gradient goes to Logits only. Probabilities are never kept: the backward
// pass makes them again from the logits and may write over them.
func CrossEntropy(a CrossEntropyArgs) *gorgonia.Node {
	return op.Apply(keptMean(), CrossEntropyRows(a))
}

// crossEntropy describes the op of the rows' losses: the positions of its
// operands, -1 for those that it does not have.
type crossEntropy struct {
	teacher, alpha, labels, rowIDs, colIDs, cols int
	extra, uniform                               int
	operands                                     int
}

// onCUDA is the loss as its steps for the CUDA device know it.
func (x *crossEntropy) onCUDA() oncuda.CrossEntropy {
	return oncuda.CrossEntropy{
		Labels: x.labels, RowIDs: x.rowIDs, ColIDs: x.colIDs, Cols: x.cols,
		Teacher: x.teacher, Alpha: x.alpha, Extra: x.extra, Uniform: x.uniform,
	}
}

// CrossEntropyRows returns the terms of the mean of CrossEntropy, (R), 0 for a row that is left out, for rows of
// different weights.
func CrossEntropyRows(a CrossEntropyArgs) *gorgonia.Node {
	in := op.Operands{a.Logits}
	x := &crossEntropy{
		teacher: in.Add(a.Teacher), alpha: in.Add(a.Alpha), labels: in.Add(a.Labels),
		rowIDs: in.Add(a.RowIDs), colIDs: in.Add(a.ColIDs), cols: in.Add(a.Cols),
		extra: in.Add(a.Extra), uniform: in.Add(a.Uniform),
	}
	x.operands = len(in)
	if err := x.check(); err != nil {
		panic(&op.BuildError{Op: "cross entropy", Err: err})
	}
	return op.Apply(x.forward(), in...)
}

// check looks at which operands were given.
func (x *crossEntropy) check() error {
	switch {
	case (x.rowIDs >= 0) != (x.colIDs >= 0):
		return errors.New("row and column ids must be given together")
	case (x.labels >= 0) == (x.rowIDs >= 0):
		return errors.New("want either labels or ids")
	case (x.teacher >= 0) != (x.alpha >= 0):
		return errors.New("a teacher and its weight alpha must be given together")
	}
	return nil
}

func (x *crossEntropy) args() string {
	return fmt.Sprintf("teacher=%d alpha=%d labels=%d rows=%d cols=%d count=%d extra=%d uniform=%d",
		x.teacher, x.alpha, x.labels, x.rowIDs, x.colIDs, x.cols, x.extra, x.uniform)
}

func (x *crossEntropy) shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := op.Need(len(in[0]) == 2, "want logits (R, V)"); err != nil {
		return nil, err
	}
	rows, cols := in[0][0], in[0][1]
	return tensor.Shape{rows}, op.All(
		op.WantShape(in, x.teacher, "teacher", rows, cols),
		op.WantShape(in, x.alpha, "alpha"),
		op.WantShape(in, x.labels, "labels", rows),
		op.WantShape(in, x.rowIDs, "row ids", rows),
		op.WantShape(in, x.colIDs, "column ids", cols),
		op.WantShape(in, x.cols, "cols"),
		op.WantShape(in, x.extra, "extra", rows),
		op.WantShape(in, x.uniform, "uniform"),
	)
}

// Auxiliary results of the rows' op: what the mean and the backward op need.
const (
	ceWeight  = iota // (R) 1/number of positives, 0 where the row is left out
	ceLogits         // (R) log-sum-exp of the logits
	ceTeacher        // (R) log-sum-exp of the teacher
	ceFirst          // (R) int32, see chains
	ceNext           // (V) int32
	ceTable          // int32
)

func (x *crossEntropy) aux(in []tensor.Shape) []exec.AuxSpec {
	rows, cols := in[0][0], in[0][1]
	a := []exec.AuxSpec{{Shape: tensor.Shape{rows}}, {Shape: tensor.Shape{rows}}, {Shape: tensor.Shape{rows}}}
	if x.rowIDs >= 0 {
		a = append(a,
			exec.AuxSpec{Shape: tensor.Shape{rows}, Int: true},
			exec.AuxSpec{Shape: tensor.Shape{cols}, Int: true},
			exec.AuxSpec{Shape: tensor.Shape{2 * chain.TableSize(rows)}, Int: true})
	}
	return a
}

// numCols returns how many columns exist in a run.
func (x *crossEntropy) numCols(c *exec.Call, total int) (int, error) {
	if x.cols < 0 {
		return total, nil
	}
	n := int(c.In[x.cols].I32[0])
	if n < 1 || n > total {
		return 0, fmt.Errorf("ops: cross entropy: cols is %d: want [1, %d]", n, total)
	}
	return n, nil
}

// weight returns the weight of the soft target in a run.
func (x *crossEntropy) weight(c *exec.Call) float32 {
	if x.teacher < 0 {
		return 0
	}
	return c.In[x.alpha].F32[0]
}

// share returns the share of the uniform distribution in a run.
func (x *crossEntropy) share(c *exec.Call) float32 {
	if x.uniform < 0 {
		return 0
	}
	return c.In[x.uniform].F32[0]
}

// further returns the further positive of row r, -1 where it has none that is not one of
// its positives already.
func (x *crossEntropy) further(c *exec.Call, r int) int32 {
	if x.extra < 0 {
		return -1
	}
	e := c.In[x.extra].I32[r]
	switch {
	case e < 0,
		x.labels >= 0 && e == c.In[x.labels].I32[r],
		x.labels < 0 && c.In[x.rowIDs].I32[r] >= 0 && c.In[x.colIDs].I32[e] == c.In[x.rowIDs].I32[r]:
		return -1
	}
	return e
}
