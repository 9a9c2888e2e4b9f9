package contrast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/chain"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// lossCase is a cross-entropy problem with any of the optional operands; empty
// ones are left out.
type lossCase struct {
	rows, cols    int
	logits        []float32
	teacher       []float32
	alpha         float32
	labels        []int32
	rowIDs, colID []int32
	count         int // 0: no Cols operand
	extra         []int32
	uniform       float32 // 0: no Uniform operand
}

func (l *lossCase) inputs() []optest.Input {
	in := []optest.Input{optest.In("logits", []int{l.rows, l.cols}, l.logits)}
	if l.teacher != nil {
		in = append(in, optest.In("teacher", []int{l.rows, l.cols}, l.teacher), optest.In("alpha", nil, []float32{l.alpha}))
	}
	if l.labels != nil {
		in = append(in, optest.I32s("labels", l.labels, l.rows))
	} else {
		in = append(in, optest.I32s("row ids", l.rowIDs, l.rows), optest.I32s("column ids", l.colID, l.cols))
	}
	if l.count > 0 {
		in = append(in, optest.I32s("cols", []int32{int32(l.count)}))
	}
	if l.extra != nil {
		in = append(in, optest.I32s("extra", l.extra, l.rows))
	}
	if l.uniform > 0 {
		in = append(in, optest.In("uniform", nil, []float32{l.uniform}))
	}
	return in
}

func (l *lossCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	take := func() *gorgonia.Node {
		n := ns[0]
		ns = ns[1:]
		return n
	}
	a := CrossEntropyArgs{Logits: take()}
	if l.teacher != nil {
		a.Teacher, a.Alpha = take(), take()
	}
	if l.labels != nil {
		a.Labels = take()
	} else {
		a.RowIDs, a.ColIDs = take(), take()
	}
	if l.count > 0 {
		a.Cols = take()
	}
	if l.extra != nil {
		a.Extra = take()
	}
	if l.uniform > 0 {
		a.Uniform = take()
	}
	return CrossEntropy(a)
}

// softmax64 is the definition.
func softmax64(x []float32) []float64 {
	p := make([]float64, len(x))
	m, sum := math.Inf(-1), 0.0
	for _, v := range x {
		m = max(m, float64(v))
	}
	for i, v := range x {
		p[i] = math.Exp(float64(v) - m)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// naive returns the loss and its gradient for the logits by the definition.
func (l *lossCase) naive() (loss float64, grad []float32) {
	n := l.cols
	if l.count > 0 {
		n = l.count
	}
	g := make([]float64, l.rows*l.cols)
	kept := 0
	for i := range l.rows {
		s := l.logits[i*l.cols : i*l.cols+n]
		y := make([]float64, n)
		positives := 0.0
		for j := range y {
			if l.labels != nil && int(l.labels[i]) == j || l.labels == nil && l.rowIDs[i] == l.colID[j] || l.extra != nil && int(l.extra[i]) == j {
				y[j] = 1
				positives++
			}
		}
		if positives == 0 || l.labels != nil && l.labels[i] < 0 {
			continue
		}
		kept++
		for j := range y {
			y[j] /= positives
		}
		if l.teacher != nil {
			for j, p := range softmax64(l.teacher[i*l.cols : i*l.cols+n]) {
				y[j] = (1-float64(l.alpha))*y[j] + float64(l.alpha)*p
			}
		}
		for j := range y {
			y[j] = (1-float64(l.uniform))*y[j] + float64(l.uniform)/float64(n)
		}
		for j, p := range softmax64(s) {
			loss -= y[j] * math.Log(p)
			g[i*l.cols+j] = p - y[j]
		}
	}
	grad = make([]float32, len(g))
	for i, v := range g {
		grad[i] = float32(v / float64(max(1, kept)))
	}
	return loss / float64(max(1, kept)), grad
}

func TestCrossEntropyVectors(t *testing.T) {
	// By hand: one row with a teacher.
	l := &lossCase{rows: 1, cols: 3, logits: []float32{2, 1, 0}, teacher: []float32{1, 1, 0}, alpha: .4, labels: []int32{0}}
	optest.Near(t, "distilled loss", optest.Eval(t, l.build, l.inputs()...).F32, []float32{.700823}, 1e-6)
	grads, _ := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
	target := []float32{.768928, .168928, .062145}
	for j, p := range softmax64(l.logits) {
		target[j] = float32(p) - target[j]
	}
	optest.Near(t, "distilled gradient", grads[0], target, 1e-5)
	// By hand: batch ids [7,3,7], queue ids [-100,3,7,7].
	ids := &lossCase{rows: 3, cols: 7, logits: make([]float32, 21), rowIDs: []int32{7, 3, 7}, colID: []int32{7, 3, 7, -100, 3, 7, 7}}
	grads, _ = optest.Gradients(t, ids.build, []int{0}, ids.inputs()...)
	want := make([]float32, 21)
	for i, y := range [][]float32{{.25, 0, .25, 0, 0, .25, .25}, {0, .5, 0, 0, .5, 0, 0}, {.25, 0, .25, 0, 0, .25, .25}} {
		for j := range y {
			want[i*7+j] = (1./7 - y[j]) / 3
		}
	}
	optest.Near(t, "id targets", grads[0], want, 1e-6)
}

// TestCrossEntropyFuzz compares random problems of every kind with the definition
// and with finite differences.
func TestCrossEntropyFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for i := range 256 {
		l := &lossCase{rows: 1 + r.IntN(6), cols: 1 + r.IntN(9)}
		if i == 63 || i == 255 {
			l.cols = 6151
		}
		l.logits = optest.F32s(r, "", l.rows, l.cols).Data.([]float32)
		for k := range l.logits {
			l.logits[k] *= 4
		}
		n := l.cols
		if i&1 != 0 {
			l.count = 1 + r.IntN(l.cols)
			n = l.count
		}
		if i&2 != 0 {
			l.teacher = optest.F32s(r, "", l.rows, l.cols).Data.([]float32)
			l.alpha = float32(r.IntN(5)) / 4
		}
		if i&4 != 0 {
			for range l.rows {
				l.labels = append(l.labels, int32(r.IntN(n+1)-1))
			}
		} else {
			for range l.rows {
				l.rowIDs = append(l.rowIDs, int32(r.IntN(5)))
			}
			for range l.cols {
				l.colID = append(l.colID, []int32{-100, 0, 1, 2, 3, 9}[r.IntN(6)])
			}
		}
		if i&64 != 0 {
			for range l.rows {
				l.extra = append(l.extra, int32(r.IntN(n+1)-1))
			}
		}
		if i&128 != 0 {
			l.uniform = float32(1+r.IntN(4)) / 4
		}
		loss, grad := l.naive()
		optest.Near(t, "loss", optest.Eval(t, l.build, l.inputs()...).F32, []float32{float32(loss)}, 1e-5)
		grads, _ := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
		optest.Near(t, "gradient", grads[0], grad, 2e-5)
		if l.cols < 100 {
			optest.CheckGrad(t, l.build, []int{0}, 1e-2, 1e-2, l.inputs()...)
		}
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, *l)
		}
	}
}

// TestCrossEntropyEmpty checks that no row left gives loss and gradient 0.
func TestCrossEntropyEmpty(t *testing.T) {
	l := &lossCase{rows: 2, cols: 2, logits: []float32{1, 2, 3, 4}, labels: []int32{-100, -1}}
	grads, loss := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
	if loss() != 0 {
		t.Errorf("loss %v, want 0", loss())
	}
	optest.Near(t, "gradient", grads[0], make([]float32, 4), 0)
}

// TestCrossEntropyTeacherUnread checks that alpha 0 skips the teacher: its NaN
// must not show.
func TestCrossEntropyTeacherUnread(t *testing.T) {
	nan := float32(math.NaN())
	l := &lossCase{rows: 1, cols: 2, logits: []float32{0, 0}, teacher: []float32{nan, nan}, labels: []int32{1}}
	grads, loss := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
	optest.Near(t, "loss", []float32{float32(loss())}, []float32{math.Ln2}, 1e-6)
	optest.Near(t, "gradient", grads[0], []float32{.5, -.5}, 1e-6)
}

// TestCrossEntropyMasked leaves whole blocks of columns without weight: with logits or a
// teacher of -Inf.
func TestCrossEntropyMasked(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 5))
	const cols = 2*chain.Block + 100
	for _, teacher := range []bool{false, true} {
		l := &lossCase{rows: 3, cols: cols, labels: []int32{chain.Block + 5, 2*chain.Block + 99, -1}}
		l.logits = optest.F32s(r, "", 3, cols).Data.([]float32)
		masked := l.logits
		if teacher {
			l.teacher, l.alpha = optest.F32s(r, "", 3, cols).Data.([]float32), 0.25
			masked = l.teacher
		}
		for i := range 3 {
			for j := range chain.Block {
				masked[i*cols+j] = float32(math.Inf(-1))
			}
		}
		loss, grad := l.naive()
		if !teacher { // the definition has 0 * -Inf
			loss = 0
			for i, label := range l.labels[:2] {
				loss -= math.Log(softmax64(l.logits[i*cols : (i+1)*cols])[label]) / 2
			}
		}
		grads, got := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
		optest.Near(t, "loss", []float32{float32(got())}, []float32{float32(loss)}, 1e-6)
		optest.Near(t, "gradient", grads[0], grad, 2e-6)
	}
}

// TestCrossEntropySteep has blocks whose first values tell nothing about their largest.
func TestCrossEntropySteep(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	const cols = chain.Block + 100
	l := &lossCase{rows: 4, cols: cols, labels: []int32{70, 2000, 80, chain.Block + 99}}
	l.logits = optest.F32s(r, "", 4, cols).Data.([]float32)
	for j := range 64 {
		l.logits[j] = -100
		l.logits[2*cols+j] = 500
	}
	l.logits[cols+2000] = 300
	l.logits[3*cols+chain.Block+99] = float32(math.Inf(-1)) // and a loss that is infinite
	for rows := 4; rows > 2; rows-- {
		want := 0.0
		for i, label := range l.labels[:rows] {
			row := l.logits[i*cols : (i+1)*cols]
			top, sum := float64(slices.Max(row)), 0.0
			for _, v := range row {
				sum += math.Exp(float64(v) - top)
			}
			want += (top + math.Log(sum) - float64(row[label])) / float64(rows)
		}
		got := optest.Eval(t, l.build, l.inputs()...).F32[0]
		if rows == 4 && !math.IsInf(float64(got), 1) || rows < 4 && !(math.Abs(float64(got)-want) <= 1e-6*want) {
			t.Errorf("%d rows: got %v, want %v", rows, got, want)
		}
		grads, _ := optest.Gradients(t, l.build, []int{0}, l.inputs()...)
		for i := range rows {
			var sum float64
			for _, g := range grads[0][i*cols : (i+1)*cols] {
				sum += float64(g)
			}
			if !(math.Abs(sum) < 2e-5) { // log sum exp is rounded to float32
				t.Errorf("%d rows: the gradient of row %d adds up to %v, want 0", rows, i, sum)
			}
		}
		l.labels[3] = -1
	}
}

// TestCrossEntropyInPlace checks the gradient when it takes the logits' memory:
// the logits are a result of the graph here, and die in the backward op.
func TestCrossEntropyInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 2))
	l := &lossCase{rows: 3, cols: 5, labels: []int32{1, -1, 4}}
	x := optest.F32s(r, "x", 3, 5)
	l.logits = make([]float32, 15)
	for i, v := range x.Data.([]float32) {
		l.logits[i] = 2 * v
	}
	_, want := l.naive()
	for i := range want {
		want[i] *= 2
	}
	build := func(ns gorgonia.Nodes) *gorgonia.Node {
		return CrossEntropy(CrossEntropyArgs{Logits: arith.MulScalar(ns[0], ns[1]), Labels: ns[2]})
	}
	grads, _ := optest.Gradients(t, build, []int{0}, x, optest.In("s", nil, []float32{2}), optest.I32s("labels", l.labels, 3))
	optest.Near(t, "gradient", grads[0], want, 1e-5)
}

func TestAccuracy(t *testing.T) {
	logits := optest.In("logits", []int{5, 3}, []float32{
		1, 2, 3, // right
		3, 2, 1, // wrong
		2, 2, 1, // a tie is wrong
		9, 9, 9, // left out
		0, 1, 0, // right
	})
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }
	optest.Near(t, "accuracy", optest.Eval(t, build, logits, optest.I32s("labels", []int32{2, 1, 0, -100, 1}, 5)).F32, []float32{.5}, 1e-6)
	optest.Near(t, "no rows", optest.Eval(t, build, logits, optest.I32s("labels", []int32{-1, -1, -1, -1, -1}, 5)).F32, []float32{0}, 0)
}

// TestAccuracyFuzz compares random problems, with many ties, with the definition.
func TestAccuracyFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	build := func(ns gorgonia.Nodes) *gorgonia.Node { return Accuracy(ns[0], ns[1]) }
	for range 40 {
		rows, cols := 1+r.IntN(9), 1+r.IntN(40)
		x, labels := make([]float32, rows*cols), optest.RandomInts(r, rows, cols+1)
		for i := range x {
			x[i] = float32(r.IntN(2 * cols))
		}
		hits, kept := 0, 0
		for i := range labels {
			labels[i]-- // -1: left out
			if labels[i] < 0 {
				continue
			}
			kept++
			rivals := 0
			for _, v := range x[i*cols : (i+1)*cols] {
				if v >= x[i*cols+int(labels[i])] {
					rivals++
				}
			}
			if rivals == 1 {
				hits++
			}
		}
		got := optest.Eval(t, build, optest.In("logits", []int{rows, cols}, x), optest.I32s("labels", labels, rows))
		optest.Near(t, "accuracy", got.F32, []float32{float32(hits) / float32(max(1, kept))}, 1e-6)
	}
}

func TestCrossEntropyErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 3))
	in := []optest.Input{
		optest.F32s(r, "logits", 2, 3), optest.F32s(r, "teacher", 2, 4), optest.F32s(r, "alpha"),
		optest.I32s("rows", make([]int32, 2), 2), optest.I32s("cols", make([]int32, 3), 3), optest.I32s("labels", []int32{0, 2}, 2), optest.I32s("count", []int32{2}),
	}
	_, ns := optest.Nodes(in)
	for _, c := range []struct {
		want string
		args CrossEntropyArgs
	}{
		{"either labels or ids", CrossEntropyArgs{Logits: ns[0]}},
		{"either labels or ids", CrossEntropyArgs{Logits: ns[0], Labels: ns[3], RowIDs: ns[3], ColIDs: ns[4]}},
		{"must be given together", CrossEntropyArgs{Logits: ns[0], RowIDs: ns[3]}},
		{"teacher and its weight", CrossEntropyArgs{Logits: ns[0], Labels: ns[3], Alpha: ns[2]}},
		{"teacher must have shape (2, 3)", CrossEntropyArgs{Logits: ns[0], Labels: ns[3], Teacher: ns[1], Alpha: ns[2]}},
		{"labels must have shape (2)", CrossEntropyArgs{Logits: ns[0], Labels: ns[4]}},
		{"column ids must have shape (3)", CrossEntropyArgs{Logits: ns[0], RowIDs: ns[3], ColIDs: ns[3]}},
		{"want logits", CrossEntropyArgs{Logits: ns[2], Labels: ns[3]}},
		{"extra must have shape (2)", CrossEntropyArgs{Logits: ns[0], Labels: ns[3], Extra: ns[4]}},
		{"uniform must have shape ()", CrossEntropyArgs{Logits: ns[0], Labels: ns[3], Uniform: ns[3]}},
	} {
		optest.BuildError(t, c.want, c.want, func() { CrossEntropy(c.args) })
	}
	optest.BuildError(t, "accuracy", "want a label", func() { Accuracy(ns[0], ns[4]) })
	for want, args := range map[string]func(ns gorgonia.Nodes) CrossEntropyArgs{
		"label 2 of row 1": func(ns gorgonia.Nodes) CrossEntropyArgs {
			return CrossEntropyArgs{Logits: ns[0], Labels: ns[5], Cols: ns[6]}
		},
		"extra positive 2 of row 1": func(ns gorgonia.Nodes) CrossEntropyArgs {
			return CrossEntropyArgs{Logits: ns[0], Labels: ns[3], Extra: ns[5], Cols: ns[6]}
		},
	} {
		g, ns := optest.Nodes(in)
		m := optest.Machine(t, g, ns, in, CrossEntropy(args(ns)))
		check.Error(t, m.RunAll(), want)
	}
}

// crossEntropySizes are sizes that models have: a queue, a batch with a queue, a
// vocabulary.
var crossEntropySizes = []struct {
	name       string
	rows, cols int
	ids        bool
}{{"queue", 8, 65536 + 8, true}, {"batch", 32, 4128, true}, {"vocabulary", 208, 30522, false}}

// TestCrossEntropyRows: the terms of rows are those of the mean, and rows of different weights have the gradient of finite
// differences.
func TestCrossEntropyRows(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	x, teacher := optest.F32s(r, "logits", 5, 7), optest.F32s(r, "teacher", 5, 7)
	labels, alpha, weights := optest.I32s("labels", []int32{3, -1, 0, 6, 2}, 5), optest.In("alpha", nil, []float32{.4}), optest.F32s(r, "weights", 1, 5)
	rows := func(ns gorgonia.Nodes) *gorgonia.Node {
		return CrossEntropyRows(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Labels: ns[2], Alpha: ns[3]})
	}
	terms := optest.Eval(t, rows, x, teacher, labels, alpha).F32
	mean := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return CrossEntropy(CrossEntropyArgs{Logits: ns[0], Teacher: ns[1], Labels: ns[2], Alpha: ns[3]})
	}, x, teacher, labels, alpha).F32[0]
	var sum float32
	for _, v := range terms {
		sum += v
	}
	if terms[1] != 0 || !(math.Abs(float64(sum/4-mean)) <= 1e-6) {
		t.Errorf("terms %v, mean %v", terms, mean)
	}
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return arith.SumProducts(layout.Reshape(rows(ns[:4]), 1, 5), ns[4], 1)
	}, []int{0}, 1e-2, 1e-2, x, teacher, labels, alpha, weights)
}
