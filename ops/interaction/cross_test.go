package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// crossProblem is a CrossAttention of a problem without weights; nil rows are left out.
type crossProblem struct {
	problem
	how                   Cross
	attention, similarity []float32
}

func (p crossProblem) inputs() []optest.Input {
	in := p.problem.inputs()
	for k, rows := range [][]float32{p.attention, p.similarity} {
		if rows != nil {
			in = append(in, optest.In([]string{"attention", "similarity"}[k], []int{len(rows) / p.channels, p.channels}, rows))
		}
	}
	return in
}

// build is CrossAttention of inputs.
func (p crossProblem) build(ns gorgonia.Nodes) *gorgonia.Node {
	how, sides := p.how, [2]Tokens{}
	named := map[string]*gorgonia.Node{}
	for _, n := range ns {
		named[n.Name()] = n
	}
	for k, s := range []problemSide{p.images, p.texts} {
		name := []string{"images", "texts"}[k]
		sides[k] = Tokens{Rows: named[name], Lengths: named[name+" lengths"], Len: s.len, First: s.first}
	}
	how.Attention, how.Similarity = named["attention"], named["similarity"]
	return CrossAttention(sides[0], sides[1], how)
}

// naive are the scores by the definition: contexts are formed.
func (p crossProblem) naive() (scores []float32) {
	row := func(x []float32, i int) (r []float64) {
		for _, v := range x[i*p.channels:][:p.channels] {
			r = append(r, float64(v))
		}
		return r
	}
	dot := func(x, y []float64) (s float64) {
		for i := range x {
			s += x[i] * y[i]
		}
		return s
	}
	under := func(x []float32) []float32 {
		if x == nil {
			return p.images.rows
		}
		return x
	}
	for i := range p.n {
		for j := range p.m {
			// Rows of queries and context: as they are, for the attention, for the score.
			var q, k [3][][]float64
			for _, t := range p.images.tokens(i) {
				for s, rows := range [][]float32{p.images.rows, under(p.attention), under(p.similarity)} {
					q[s] = append(q[s], row(rows, i*p.images.len+t))
				}
			}
			for _, l := range p.texts.tokens(j) {
				for s := range k {
					k[s] = append(k[s], row(p.texts.rows, j*p.texts.len+l))
				}
			}
			if !p.how.ImageQueries {
				q, k = k, q
			}
			if len(q[0]) == 0 || len(k[0]) == 0 {
				scores = append(scores, 0)
				continue
			}
			var r []float64
			b := make([][]float64, len(q[0]))
			norms := make([]float64, len(k[0]))
			for a := range b {
				for c := range k[0] {
					v := dot(q[1][a], k[1][c])
					if v < 0 {
						v *= .1
					}
					b[a], norms[c] = append(b[a], v), norms[c]+v*v
				}
			}
			for a := range b {
				sum, weights := 0., make([]float64, len(k[0]))
				for c, v := range b[a] {
					weights[c] = math.Exp(float64(p.how.Scale) * v / (math.Sqrt(norms[c]) + 1e-8))
					sum += weights[c]
				}
				mean, kept, all := sum/float64(len(weights)), 0., 0.
				equal := slices.Max(weights) <= mean*(1+1e-5)
				if p.how.Prob {
					mean = 0
					for _, v := range weights {
						mean, all = mean+v*math.Sqrt(v), all+math.Sqrt(v)
					}
					mean /= all
				}
				if p.how.Focal && !equal {
					for c, v := range weights {
						if v <= mean {
							weights[c] = 0
						}
						kept += weights[c]
					}
					sum = kept
				}
				context, scored := make([]float64, p.channels), 0.
				for c, v := range weights {
					for d := range context {
						context[d] += v / sum * k[0][c][d]
					}
					scored += v / sum * dot(q[2][a], k[2][c])
				}
				r = append(r, scored/max(1e-8, math.Sqrt(dot(q[0][a], q[0][a])*dot(context, context))))
			}
			score := 0.
			for _, v := range r {
				if p.how.Pool > 0 {
					score += math.Exp(float64(p.how.Pool) * v)
				} else {
					score += v / float64(len(r))
				}
			}
			if p.how.Pool > 0 {
				score = math.Log(score) / float64(p.how.Pool)
			}
			scores = append(scores, float32(score))
		}
	}
	return scores
}

// randomCross is a problem of a kind: bits of kind choose what there is.
func randomCross(r *rand.Rand, kind, n, m, tokens, words, channels int) crossProblem {
	p := crossProblem{problem: problem{n: n, m: m, channels: channels}, how: Cross{ImageQueries: kind&1 != 0, Scale: 4, Focal: kind&96 != 0, Prob: kind&64 != 0}}
	if kind&2 != 0 {
		p.how.Pool = 5
	}
	p.images = randomSide(r, n, tokens, channels, kind&4 != 0, false)
	p.texts = randomSide(r, m, words, channels, kind&4 != 0, false)
	under := func() []float32 { return optest.F32s(r, "", n*tokens, channels).Data.([]float32) }
	if kind&8 != 0 {
		p.attention = under()
	}
	if kind&16 != 0 {
		p.similarity = under()
	}
	return p
}

// TestCross compares scores of random problems of every kind with the definition and gradients
// with finite differences: with and without lengths, empty sequences, rows under metrics.
func TestCross(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 1))
	for i := range 160 {
		kind := i % 64
		if i >= 128 { // focal by the weighted mean
			kind = 64 + i%32
		}
		p := randomCross(r, kind, 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(5), 3+r.IntN(4))
		in := p.inputs()
		name := fmt.Sprintf("problem %d", i)
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, p.naive(), 1e-5)
		if !p.how.Focal { // whose scores jump
			optest.CheckGrad(t, p.build, floats(in), 1e-3, 2e-2, in...)
		}
		if t.Failed() {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}

// TestCrossBlocks: scores and gradients of more than one block of either side are those of the
// pairs alone.
func TestCrossBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 2))
	for kind := range 64 {
		if kind&4 == 0 || kind&2 != 0 && kind > 8 {
			continue
		}
		p := randomCross(r, kind, 5, 7, 512/3, 90, 4)
		if kind&8 != 0 {
			p = randomCross(r, kind, 7, 4, 100, 512+9, 4)
		}
		in := p.inputs()
		optest.Near(t, fmt.Sprint(kind), optest.Eval(t, p.build, in...).F32, p.naive(), 2e-5)
		checkPairs(t, fmt.Sprint(kind), p, floats(in), p.n, p.m, p.pair, ofSide, 5e-5)
	}
}

// pair is the problem of one image and text.
func (p crossProblem) pair(i, j int) crossProblem {
	cut := func(s problemSide, i int) problemSide {
		n := s.len * p.channels
		s.rows = s.rows[i*n:][:n]
		if s.lengths != nil {
			s.lengths = s.lengths[i:][:1]
		}
		return s
	}
	rows := func(x []float32) []float32 {
		if x == nil {
			return nil
		}
		return x[i*p.images.len*p.channels:][:p.images.len*p.channels]
	}
	p.n, p.m, p.images, p.texts = 1, 1, cut(p.images, i), cut(p.texts, j)
	p.attention, p.similarity = rows(p.attention), rows(p.similarity)
	return p
}

// TestCrossGolden compares with torch, from tools/goldens/cross.py.
func TestCrossGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	scores := func(how Cross, names ...string) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			x, y := Tokens{Rows: g("images"), Lengths: g("index"), Len: 5, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 6, First: 1}
			how := how
			for _, name := range names {
				if name == "attention" {
					how.Attention = g(name)
				} else {
					how.Similarity = g(name)
				}
			}
			return CrossAttention(x, y, how)
		}
	}
	optest.CheckTorch(t, "cross.json", map[string]func(get) *gorgonia.Node{
		"t2i_lse":              scores(Cross{Scale: 9, Pool: 6}),
		"i2t_lse":              scores(Cross{ImageQueries: true, Scale: 4, Pool: 5}),
		"t2i_mean_metrics":     scores(Cross{Scale: 9}, "attention", "similarity"),
		"i2t_lse_metrics":      scores(Cross{ImageQueries: true, Scale: 4, Pool: 5}, "attention", "similarity"),
		"t2i_focal":            scores(Cross{Scale: 20, Focal: true}),
		"i2t_focal_similarity": scores(Cross{ImageQueries: true, Scale: 4, Focal: true}, "similarity"),
		"t2i_focal_prob":       scores(Cross{Scale: 20, Focal: true, Prob: true}),
		"i2t_focal_prob":       scores(Cross{ImageQueries: true, Scale: 4, Focal: true, Prob: true}),
	})
}

// TestCrossEqual: where all weights of a query are equal, the focus keeps them; tokens of zeros
// have a score and gradients.
func TestCrossEqual(t *testing.T) {
	for _, focal := range []bool{false, true} {
		for _, queries := range []bool{false, true} {
			in := []optest.Input{optest.In("images", []int{3, 2}, []float32{3, 4, 3, 4, 3, 4}), optest.In("texts", []int{2, 2}, []float32{3, 4, 3, 4})}
			zero := []optest.Input{in[0], optest.In("texts", []int{2, 2}, make([]float32, 4))}
			build := func(ns gorgonia.Nodes) *gorgonia.Node {
				return CrossAttention(Tokens{Rows: ns[0], Len: 3}, Tokens{Rows: ns[1], Len: 2}, Cross{ImageQueries: queries, Scale: 9, Focal: focal})
			}
			optest.Near(t, "equal", optest.Eval(t, build, in...).F32, []float32{1}, 1e-6)
			grads, _ := optest.Gradients(t, build, []int{0, 1}, zero...)
			for _, g := range grads {
				for _, v := range g {
					if v != v {
						t.Fatalf("tokens of zeros have the gradients %v", grads)
					}
				}
			}
			nan := float32(math.NaN())
			broken := []optest.Input{in[0], optest.In("texts", []int{2, 2}, []float32{nan, 1, 2, 3})}
			if v := optest.Eval(t, build, broken...).F32[0]; v == v {
				t.Errorf("NaN became the score %v", v)
			}
		}
	}
}

func TestCrossErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.F32s(r, "narrow", 4, 3)})
	x, y := Tokens{Rows: ns[0], Len: 3}, Tokens{Rows: ns[1], Len: 2}
	for _, c := range []struct {
		want          string
		images, texts Tokens
		how           Cross
	}{
		{"want rows (R*4, C)", Tokens{Rows: ns[0], Len: 4}, y, Cross{Scale: 9}},
		{"as many channels (got 4 and 3)", x, Tokens{Rows: ns[2], Len: 2}, Cross{Scale: 9}},
		{"under a metric must have shape (6, 4) (got (4, 4))", x, y, Cross{Scale: 9, Attention: ns[1]}},
		{"scale of the attention must be > 0 (got 0)", x, y, Cross{}},
		{"scale of the pool must be >= 0 (got -1)", x, y, Cross{Scale: 9, Pool: -1}},
	} {
		optest.BuildError(t, c.want, c.want, func() { CrossAttention(c.images, c.texts, c.how) })
	}
	optest.RunError(t, "length 4 of sequence 1: want at most 3", func(ns gorgonia.Nodes) *gorgonia.Node {
		return CrossAttention(Tokens{Rows: ns[0], Len: 3, Lengths: ns[2]}, Tokens{Rows: ns[1], Len: 2}, Cross{Scale: 9})
	}, optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.I32s("lengths", []int32{2, 4}, 2))
}

// TestCrossBF16: products in bfloat16 give scores and gradients near those of float32.
func TestCrossBF16(t *testing.T) {
	p := randomCross(rand.New(rand.NewPCG(67, 4)), 31, 4, 5, 6, 7, 64)
	checkBF16(t, optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}, 4e-2)
}

// checkBF16 compares the results of a case with those by products in bfloat16, which are near and
// others.
func checkBF16(t *testing.T, c optest.Case, tol float64) {
	t.Helper()
	e, err := kernel.New(kernel.Options{Threads: 2, Precision: "bf16"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, equal := results(t, optest.Engine, c), true
	for i, got := range results(t, e, c) {
		optest.Near(t, fmt.Sprint("result ", i), got, want[i], tol)
		equal = equal && slices.Equal(got, want[i])
	}
	if equal {
		t.Error("bf16 gives the bits of float32")
	}
}

// results are those of a case, and its gradients.
func results(t *testing.T, e *kernel.Engine, c optest.Case) (list [][]float32) {
	t.Helper()
	m, outputs := c.Compile(t, e)
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, n := range outputs {
		v, err := m.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, slices.Clone(v.F32))
	}
	return list
}
