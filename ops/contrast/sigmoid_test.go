package contrast

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// sigmoidCase is a problem with any of the optional operands; empty ones are left out.
type sigmoidCase struct {
	rows, cols     int
	scores         []float32
	logScale, bias float32
	labels         []int32
	rowIDs, colIDs []int32
	count          int // 0: no Cols operand
}

func (s *sigmoidCase) inputs() []optest.Input {
	in := []optest.Input{{Name: "scores", Shape: []int{s.rows, s.cols}, Data: s.scores}, {Name: "log scale", Shape: nil, Data: []float32{s.logScale}}, {Name: "bias", Shape: nil, Data: []float32{s.bias}}}
	if s.labels != nil {
		in = append(in, optest.I32s("labels", s.labels, s.rows))
	} else {
		in = append(in, optest.I32s("row ids", s.rowIDs, s.rows), optest.I32s("column ids", s.colIDs, s.cols))
	}
	if s.count > 0 {
		in = append(in, optest.I32s("cols", []int32{int32(s.count)}))
	}
	return in
}

func (s *sigmoidCase) build(ns gorgonia.Nodes) *gorgonia.Node {
	a := SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2]}
	ns = ns[3:]
	if s.labels != nil {
		a.Labels, ns = ns[0], ns[1:]
	} else {
		a.RowIDs, a.ColIDs, ns = ns[0], ns[1], ns[2:]
	}
	if s.count > 0 {
		a.Cols = ns[0]
	}
	return SigmoidContrast(a)
}

// naive returns the loss and its gradients for scores, log scale and bias by the
// definition, and the sums of the sizes of the terms that make the last two.
func (s *sigmoidCase) naive() (loss float64, grads [3][]float32, sizes [3]float64) {
	n := s.cols
	if s.count > 0 {
		n = s.count
	}
	var kept, dt, db float64
	t, ds := math.Exp(float64(s.logScale)), make([]float64, s.rows*s.cols)
	for i := range s.rows {
		if s.labels != nil && s.labels[i] < 0 || s.labels == nil && s.rowIDs[i] < 0 {
			continue
		}
		kept++
		for j := range n {
			x := float64(s.scores[i*s.cols+j])
			z := -1.
			if s.labels != nil && int(s.labels[i]) == j || s.labels == nil && s.rowIDs[i] == s.colIDs[j] {
				z = 1
			}
			u := -z * (t*x + float64(s.bias))
			loss += max(u, 0) + math.Log1p(math.Exp(-math.Abs(u)))
			slope := -z / (1 + math.Exp(-u))
			ds[i*s.cols+j] = t * slope
			dt += t * x * slope
			db += slope
			sizes[1] += math.Abs(t*x*slope) / float64(s.rows)
			sizes[2] += math.Abs(slope) / float64(s.rows)
		}
	}
	kept = max(1, kept)
	for _, v := range ds {
		grads[0] = append(grads[0], float32(v/kept))
	}
	grads[1], grads[2] = []float32{float32(dt / kept)}, []float32{float32(db / kept)}
	return loss / kept, grads, sizes
}

// compare holds loss and gradients against the definition.
func (s *sigmoidCase) compare(t *testing.T, tol float64) {
	t.Helper()
	want, wantGrads, sizes := s.naive()
	optest.Near(t, "loss", optest.Eval(t, s.build, s.inputs()...).F32, []float32{float32(want)}, tol)
	grads, _ := optest.Gradients(t, s.build, []int{0, 1, 2}, s.inputs()...)
	optest.Near(t, "gradient of the scores", grads[0], wantGrads[0], tol)
	for k, name := range []string{1: "log scale", 2: "bias"} {
		if k > 0 && !(math.Abs(float64(grads[k][0]-wantGrads[k][0])) <= tol*sizes[k]) {
			t.Errorf("gradient of the %s: got %v, want %v", name, grads[k][0], wantGrads[k][0])
		}
	}
}

// TestSigmoidContrastGolden compares loss and gradients with torch's, from
// tools/goldens/siglip.py.
func TestSigmoidContrastGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	build := func(g get) *gorgonia.Node {
		return SigmoidContrast(SigmoidArgs{
			Scores: g("scores"), LogScale: g("logScale"), Bias: g("bias"),
			Labels: g("labels"), RowIDs: g("rowIDs"), ColIDs: g("colIDs"), Cols: g("cols"),
		})
	}
	optest.CheckTorch(t, "siglip.json", map[string]func(get) *gorgonia.Node{
		"pairs": build, "as the paper starts": build, "steep": build, "positive bias": build, "columns": build, "ids": build,
	})
}

func TestSigmoidContrastVectors(t *testing.T) {
	// By hand: logits 0 are the logarithm of 2 for every pair, slopes +-1/2, and dt' is
	// 1/B sum t s d with t = 1.
	zero := &sigmoidCase{rows: 2, cols: 3, scores: []float32{1, 1, 1, 1, 1, 1}, bias: -1, labels: []int32{0, 2}}
	optest.Near(t, "logits of 0", optest.Eval(t, zero.build, zero.inputs()...).F32, []float32{3 * math.Ln2}, 1e-6)
	grads, _ := optest.Gradients(t, zero.build, []int{0, 1, 2}, zero.inputs()...)
	optest.Near(t, "scores", grads[0], []float32{-.25, .25, .25, .25, .25, -.25}, 1e-6)
	optest.Near(t, "log scale", grads[1], []float32{.5}, 1e-6)
	optest.Near(t, "bias", grads[2], []float32{.5}, 1e-6)
	// By hand: t = 10, b = -10, one pair with score 1 and one with 0: log 2 + log(1 + exp(-10)).
	paper := &sigmoidCase{rows: 1, cols: 2, scores: []float32{1, 0}, logScale: float32(math.Log(10)), bias: -10, labels: []int32{0}}
	optest.Near(t, "the paper's start", optest.Eval(t, paper.build, paper.inputs()...).F32, []float32{.693192580}, 1e-6)
}

// TestSigmoidContrastFuzz compares random problems of every kind with the definition and
// with finite differences.
func TestSigmoidContrastFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for i := range 128 {
		s := &sigmoidCase{rows: 1 + r.IntN(6), cols: 1 + r.IntN(9), logScale: 4*r.Float32() - 1, bias: 8*r.Float32() - 6}
		if i%32 == 31 {
			s.cols = []int{sigmoidChunk, sigmoidChunk + 3, sigmoidBlock, sigmoidBlock + 2*sigmoidChunk + 7}[i/32]
		}
		s.scores = optest.F32s(r, "", s.rows, s.cols).Data.([]float32)
		n := s.cols
		if i&1 != 0 {
			s.count = 1 + r.IntN(s.cols)
			n = s.count
		}
		if i&2 != 0 {
			for range s.rows {
				s.labels = append(s.labels, int32(r.IntN(n+1)-1))
			}
		} else {
			for range s.rows {
				s.rowIDs = append(s.rowIDs, int32(r.IntN(6)-1))
			}
			for range s.cols {
				s.colIDs = append(s.colIDs, []int32{-100, -1, 0, 1, 2, 9}[r.IntN(6)])
			}
		}
		s.compare(t, 1e-5)
		if s.cols < 100 && s.logScale < 1.5 {
			optest.CheckGrad(t, s.build, []int{0, 1, 2}, 2e-2, 3e-2, s.inputs()...)
		}
		if t.Failed() {
			t.Fatalf("case %d: %+v", i, *s)
		}
	}
}

// Pairs that are told apart as they should be have losses and gradients far below the
// logits' last digit, and those that are not do not overflow.
func TestSigmoidContrastSteep(t *testing.T) {
	const n = 700
	for _, wrong := range []float32{1, -1} {
		s := &sigmoidCase{rows: 3, cols: n, bias: -2, logScale: float32(math.Log(14)), labels: []int32{0, 1, n - 1}}
		s.scores = make([]float32, 3*n)
		for i := range s.scores {
			s.scores[i] = -wrong * (1 + float32(i%7)/8)
		}
		for i, l := range s.labels {
			s.scores[i*n+int(l)] = wrong
		}
		s.compare(t, 4e-6)
		s.logScale = 8 // logits of thousands
		want, _, _ := s.naive()
		got := optest.Eval(t, s.build, s.inputs()...).F32[0]
		grads, _ := optest.Gradients(t, s.build, []int{0, 1, 2}, s.inputs()...)
		if !(math.Abs(float64(got)-want) <= 1e-6*want) || grads[2][0] != grads[2][0] {
			t.Errorf("loss %v, want %v; gradient of the bias %v", got, want, grads[2][0])
		}
	}
	// The gradient of a positive alone, at a logit of 20.
	one := &sigmoidCase{rows: 1, cols: 1, scores: []float32{20}, labels: []int32{0}}
	one.compare(t, 1e-6)
}

// TestSigmoidContrastEmpty checks that no row left gives loss and gradients 0.
func TestSigmoidContrastEmpty(t *testing.T) {
	for _, s := range []*sigmoidCase{
		{rows: 2, cols: 2, scores: []float32{1, 2, 3, 4}, labels: []int32{-100, -1}},
		{rows: 2, cols: 2, scores: []float32{1, 2, 3, 4}, rowIDs: []int32{-1, -1}, colIDs: []int32{-1, 3}},
	} {
		grads, loss := optest.Gradients(t, s.build, []int{0, 1, 2}, s.inputs()...)
		if loss() != 0 {
			t.Errorf("loss %v, want 0", loss())
		}
		for k, n := range []int{4, 1, 1} {
			optest.Near(t, "gradient", grads[k], make([]float32, n), 0)
		}
	}
}

// TestSigmoidContrastInPlace checks the gradient when it takes the scores' memory: they
// are a result of the graph here, and die in the backward op.
func TestSigmoidContrastInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 2))
	x := optest.F32s(r, "x", 3, sigmoidChunk+5)
	s := &sigmoidCase{rows: 3, cols: sigmoidChunk + 5, labels: []int32{1, -1, sigmoidChunk}, logScale: .5, bias: -.25, count: sigmoidChunk + 2}
	for _, v := range x.Data.([]float32) {
		s.scores = append(s.scores, 2*v)
	}
	_, want, _ := s.naive()
	for i := range want[0] {
		want[0][i] *= 2
	}
	inputs := append(s.inputs(), optest.In("two", nil, []float32{2}))
	inputs[0] = x
	grads, _ := optest.Gradients(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return s.build(append(gorgonia.Nodes{arith.MulScalar(ns[0], ns[5])}, ns[1:5]...))
	}, []int{0, 1, 2}, inputs...)
	for k, name := range []string{"scores", "log scale", "bias"} {
		optest.Near(t, name, grads[k], want[k], 1e-5)
	}
}

func TestSigmoidContrastErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 3))
	in := []optest.Input{
		optest.F32s(r, "scores", 2, 3), optest.F32s(r, "scalar"), optest.F32s(r, "other"),
		optest.I32s("rows", make([]int32, 2), 2), optest.I32s("cols", make([]int32, 3), 3), optest.I32s("labels", []int32{0, 2}, 2), optest.I32s("count", []int32{2}), optest.I32s("none", []int32{4}),
	}
	_, ns := optest.Nodes(in)
	s, t1, b, rows, cols := ns[0], ns[1], ns[2], ns[3], ns[4]
	for _, c := range []struct {
		want string
		args SigmoidArgs
	}{
		{"either labels or ids", SigmoidArgs{Scores: s, LogScale: t1, Bias: b}},
		{"either labels or ids", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, Labels: rows, RowIDs: rows, ColIDs: cols}},
		{"must be given together", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, ColIDs: cols}},
		{"operand 0 is nil", SigmoidArgs{LogScale: t1, Bias: b, Labels: rows}},
		{"operand 1 is nil", SigmoidArgs{Scores: s, Bias: b, Labels: rows}},
		{"operand 2 is nil", SigmoidArgs{Scores: s, LogScale: t1, Labels: rows}},
		{"want scores (B, N)", SigmoidArgs{Scores: t1, LogScale: t1, Bias: b, Labels: rows}},
		{"log scale must have shape ()", SigmoidArgs{Scores: s, LogScale: s, Bias: b, Labels: rows}},
		{"bias must have shape ()", SigmoidArgs{Scores: s, LogScale: t1, Bias: s, Labels: rows}},
		{"labels must have shape (2)", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, Labels: cols}},
		{"row ids must have shape (2)", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, RowIDs: cols, ColIDs: cols}},
		{"column ids must have shape (3)", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, RowIDs: rows, ColIDs: rows}},
		{"cols must have shape ()", SigmoidArgs{Scores: s, LogScale: t1, Bias: b, Labels: rows, Cols: rows}},
	} {
		optest.BuildError(t, c.want, c.want, func() { SigmoidContrast(c.args) })
	}
	for want, args := range map[string]func(ns gorgonia.Nodes) SigmoidArgs{
		"label 2 of row 1: want less than 2 columns": func(ns gorgonia.Nodes) SigmoidArgs {
			return SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], Labels: ns[5], Cols: ns[6]}
		},
		"cols is 4: want [1, 3]": func(ns gorgonia.Nodes) SigmoidArgs {
			return SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], Labels: ns[3], Cols: ns[7]}
		},
	} {
		g, ns := optest.Nodes(in)
		m := optest.Machine(t, g, ns, in, SigmoidContrast(args(ns)))
		check.Error(t, m.RunAll(), want)
	}
}

// sigmoidCases are rows of opCases.
func sigmoidCases() []optest.Case {
	r := rand.New(rand.NewPCG(21, 4))
	const rows, cols = 5, 2*sigmoidBlock + 300
	scores, t, b := optest.F32s(r, "scores", rows, cols), optest.F32s(r, "log scale"), optest.F32s(r, "bias")
	return []optest.Case{
		{Name: "sigmoid contrast with labels", WRT: []int{0, 1, 2},
			Inputs: []optest.Input{scores, t, b, optest.I32s("labels", []int32{7, -1, sigmoidBlock, 4095, 0}, rows), optest.I32s("cols", []int32{sigmoidBlock + 77})},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SigmoidContrast(SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], Labels: ns[3], Cols: ns[4]})
			}},
		{Name: "sigmoid contrast with ids", WRT: []int{0, 1, 2},
			Inputs: []optest.Input{scores, t, b, optest.I32s("rows", []int32{7, 3, 7, -1, 400}, rows), optest.I32s("cols", optest.RandomInts(r, cols, 300), cols)},
			Build: func(ns gorgonia.Nodes) *gorgonia.Node {
				return SigmoidContrast(SigmoidArgs{Scores: ns[0], LogScale: ns[1], Bias: ns[2], RowIDs: ns[3], ColIDs: ns[4]})
			}},
	}
}

// TestSigmoidContrastHash: variants that differ in one argument are different nodes, in the
// gradient too.
func TestSigmoidContrastHash(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 5))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 12, 12), optest.F32s(r, "s"), optest.F32s(r, "u"), optest.I32s("ids", make([]int32, 12), 12), optest.I32s("n", []int32{4})})
	var forward, backward []func() *gorgonia.Node
	for _, a := range []SigmoidArgs{
		{Labels: ns[3]}, {RowIDs: ns[3], ColIDs: ns[3]}, {Labels: ns[3], Cols: ns[4]}, {RowIDs: ns[3], ColIDs: ns[3], Cols: ns[4]},
	} {
		a.Scores, a.LogScale, a.Bias = ns[0], ns[1], ns[2]
		forward = append(forward, func() *gorgonia.Node { return SigmoidContrast(a) })
		backward = append(backward, func() *gorgonia.Node {
			n := SigmoidContrast(a)
			o := op.Of(n)
			in := gorgonia.Nodes{a.Scores, a.LogScale, a.Bias}
			for _, x := range []*gorgonia.Node{a.Labels, a.RowIDs, a.ColIDs, a.Cols} {
				if x != nil {
					in = append(in, x)
				}
			}
			return o.Grad(in, n, ns[1])[0]
		})
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{"sigmoid contrast": forward, "sigmoid contrast dx": backward})
}
