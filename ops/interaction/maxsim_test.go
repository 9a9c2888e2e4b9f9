package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// problem is a MaxSim with any of the optional operands.
type problem struct {
	n, m, channels int
	images, texts  problemSide
}

// problemSide is one side; nil lengths and weights are left out.
type problemSide struct {
	rows, weights []float32
	lengths       []int32
	len, first    int
}

func (p problem) inputs() (in []optest.Input) {
	for k, s := range []problemSide{p.images, p.texts} {
		side := []string{"images", "texts"}[k]
		in = append(in, optest.In(side, []int{len(s.rows) / p.channels, p.channels}, s.rows))
		if s.lengths != nil {
			in = append(in, optest.I32s(side+" lengths", s.lengths, len(s.lengths)))
		}
		if s.weights != nil {
			in = append(in, optest.In(side+" weights", []int{len(s.weights)}, s.weights))
		}
	}
	return in
}

// build is MaxSim of inputs.
func (p problem) build(ns gorgonia.Nodes) *gorgonia.Node {
	images, texts := p.sides(ns)
	return MaxSim(images, texts)
}

// sides are the tokens of inputs.
func (p problem) sides(ns gorgonia.Nodes) (images, texts Tokens) {
	var sides [2]Tokens
	for k, s := range []problemSide{p.images, p.texts} {
		q := Tokens{Rows: ns[0], Len: s.len, First: s.first}
		ns = ns[1:]
		if s.lengths != nil {
			q.Lengths, ns = ns[0], ns[1:]
		}
		if s.weights != nil {
			q.Weights, ns = ns[0], ns[1:]
		}
		sides[k] = q
	}
	return sides[0], sides[1]
}

// floats are the inputs that have gradients.
func floats(in []optest.Input) (at []int) {
	for i, x := range in {
		if _, ok := x.Data.([]float32); ok {
			at = append(at, i)
		}
	}
	return at
}

// tokens are the tokens of sequence i that take part.
func (s problemSide) tokens(i int) (list []int) {
	end := s.len
	if s.lengths != nil {
		end = int(s.lengths[i])
	}
	for k := s.first; k < end; k++ {
		list = append(list, k)
	}
	return list
}

// naive is the definition: scores, and the gradients of sum g_ij s_ij for rows and weights of
// both sides.
func (p problem) naive(g []float32) (scores []float64, rows, weights [2][]float64) {
	sides := [2]problemSide{p.images, p.texts}
	for k, s := range sides {
		rows[k], weights[k] = make([]float64, len(s.rows)), make([]float64, len(s.weights))
	}
	product := func(i, t, j, l int) (sum float64) {
		for c := range p.channels {
			sum += float64(p.images.rows[(i*p.images.len+t)*p.channels+c]) * float64(p.texts.rows[(j*p.texts.len+l)*p.channels+c])
		}
		return sum
	}
	for i := range p.n {
		for j := range p.m {
			score, slope := 0., float64(g[i*p.m+j])
			add := func(k, own int, w float64, t, l int) {
				v := product(i, t, j, l)
				score += w * v
				weights[k][own] += slope * v
				for c := range p.channels {
					a, b := (i*p.images.len+t)*p.channels+c, (j*p.texts.len+l)*p.channels+c
					rows[0][a] += slope * w * float64(p.texts.rows[b])
					rows[1][b] += slope * w * float64(p.images.rows[a])
				}
			}
			ts, ls := p.images.tokens(i), p.texts.tokens(j)
			if len(ts) == 0 || len(ls) == 0 {
				scores = append(scores, 0)
				continue
			}
			if p.images.weights != nil {
				for _, t := range ts {
					best := ls[0]
					for _, l := range ls {
						if product(i, t, j, l) > product(i, t, j, best) {
							best = l
						}
					}
					own := i*p.images.len + t
					add(0, own, float64(p.images.weights[own]), t, best)
				}
			}
			if p.texts.weights != nil {
				for _, l := range ls {
					best := ts[0]
					for _, t := range ts {
						if product(i, t, j, l) > product(i, best, j, l) {
							best = t
						}
					}
					own := j*p.texts.len + l
					add(1, own, float64(p.texts.weights[own]), best, l)
				}
			}
			scores = append(scores, score)
		}
	}
	return scores, rows, weights
}

// randomSide makes sequences of tokens, of which some have none.
func randomSide(r *rand.Rand, n, length, channels int, lengths, weights bool) problemSide {
	s := problemSide{len: length, rows: optest.F32s(r, "", n*length, channels).Data.([]float32)}
	if length > 1 {
		s.first = r.IntN(2)
	}
	if lengths {
		for range n {
			s.lengths = append(s.lengths, int32(r.IntN(length+1)))
		}
	}
	if weights {
		s.weights = optest.F32s(r, "", n*length).Data.([]float32)
	}
	return s
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// TestMaxSim compares scores and gradients of random problems with the definition: with and
// without lengths, empty sequences, one sum or both, more than one block of either side.
func TestMaxSim(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 1))
	for i := range 120 {
		n, m, tokens, words := 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(5), 1+r.IntN(6)
		switch i {
		case 100:
			n, m, tokens, words = blockImages+3, 7, 2, blockTokens/3
		case 101:
			n, m, tokens, words = 2, 3, 3, blockTokens+9
		}
		p := problem{n: n, m: m, channels: 1 + r.IntN(9)}
		both := r.IntN(3)
		p.images = randomSide(r, n, tokens, p.channels, i&1 != 0, both != 1)
		p.texts = randomSide(r, m, words, p.channels, i&2 != 0, both != 2)
		in := p.inputs()
		name := fmt.Sprintf("problem %d", i)
		g := optest.F32s(rand.New(rand.NewPCG(7, 7)), "", n, m).Data.([]float32) // those of optest.Gradients
		scores, rows, weights := p.naive(g)
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, narrow(scores), 1e-5)
		grads, _ := optest.Gradients(t, p.build, floats(in), in...)
		for k, s := range []problemSide{p.images, p.texts} {
			optest.Near(t, name+": rows", grads[0], narrow(rows[k]), 2e-5)
			grads = grads[1:]
			if s.weights != nil {
				optest.Near(t, name+": weights", grads[0], narrow(weights[k]), 2e-5)
				grads = grads[1:]
			}
		}
		if n*m*tokens*words < 60 {
			optest.CheckGrad(t, p.build, floats(in), 1e-3, 2e-2, in...)
		}
		if t.Failed() {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}

// alignment is the matrix of reference vectors: three words and two regions, whose products
// are made by unit vectors as regions.
var alignment = []float32{.9, .1, .2, .6, .3, .4}

// TestMaxSimVectors: scores of one pair that were worked out by hand.
func TestMaxSimVectors(t *testing.T) {
	in := []optest.Input{optest.In("regions", []int{2, 2}, []float32{1, 0, 0, 1}), optest.In("words", []int{3, 2}, alignment),
		optest.In("region logits", []int{2, 1}, []float32{0, 1}), optest.In("word logits", []int{3, 1}, []float32{1, 0, 0})}
	for _, c := range []struct {
		name    string
		want    float32
		weights func(x, y *Tokens, ns gorgonia.Nodes)
	}{
		{"max_sum over words", 1.9, func(_, y *Tokens, _ gorgonia.Nodes) { y.Weights = y.Sum() }},
		{"max_ave over words", .633333, func(_, y *Tokens, _ gorgonia.Nodes) { y.Weights = y.Mean() }},
		{"max_ave both ways, twice", 2 * .691667, func(x, y *Tokens, _ gorgonia.Nodes) { x.Weights, y.Weights = x.Mean(), y.Mean() }},
		{"max_soft both ways, twice", 2 * .705565, func(x, y *Tokens, ns gorgonia.Nodes) {
			x.Weights, y.Weights = x.Softmax(ns[2]), y.Softmax(ns[3])
		}},
	} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			x, y := Tokens{Rows: ns[0], Len: 2}, Tokens{Rows: ns[1], Len: 3}
			c.weights(&x, &y, ns)
			return MaxSim(x, y)
		}, in...)
		optest.Near(t, c.name, got.F32, []float32{c.want}, 2e-6)
	}
}

// TestMaxSimNaN: a sequence of NaN has no score that looks like one.
func TestMaxSimNaN(t *testing.T) {
	nan := float32(math.NaN())
	in := []optest.Input{optest.In("x", []int{2, 1}, []float32{nan, nan}), optest.In("y", []int{2, 1}, []float32{1, 2})}
	for _, over := range []string{"images", "texts"} {
		got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			x, y := Tokens{Rows: ns[0], Len: 2}, Tokens{Rows: ns[1], Len: 2}
			if over == "images" {
				x.Weights = x.Sum()
			} else {
				y.Weights = y.Sum()
			}
			return MaxSim(x, y)
		}, in...).F32[0]
		if got == got {
			t.Errorf("maxima over %s: NaN became %v", over, got)
		}
	}
}

// TestMaxSimGolden compares MaxSim and its weights with torch, from tools/goldens/interaction.py.
func TestMaxSimGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	sides := func(g get) (Tokens, Tokens) {
		return Tokens{Rows: g("images"), Lengths: g("index"), Len: 4, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 5, First: 1}
	}
	optest.CheckTorch(t, "interaction.json", map[string]func(get) *gorgonia.Node{
		"max_sum": func(g get) *gorgonia.Node {
			x, y := sides(g)
			y.Weights = y.Sum()
			return MaxSim(x, y)
		},
		"max_ave": func(g get) *gorgonia.Node {
			x, y := sides(g)
			x.Weights, y.Weights = x.Mean(), y.Mean()
			return arith.Combine([]float32{.5}, MaxSim(x, y))
		},
		"max_soft": func(g get) *gorgonia.Node {
			x, y := sides(g)
			x.Weights, y.Weights = x.Softmax(g("imageLogits")), y.Softmax(g("textLogits"))
			return arith.Combine([]float32{.5}, MaxSim(x, y))
		},
	})
}

func TestMaxSimErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 3))
	in := []optest.Input{optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.F32s(r, "narrow", 4, 3), optest.F32s(r, "v", 6), optest.I32s("lengths", []int32{2, 4}, 2)}
	_, ns := optest.Nodes(in)
	x, y, narrow, v, lengths := ns[0], ns[1], ns[2], ns[3], ns[4]
	one := Tokens{Rows: x, Len: 3, Weights: v}
	for _, c := range []struct {
		want          string
		images, texts Tokens
	}{
		{"want weights of images or of texts", Tokens{Rows: x, Len: 3}, Tokens{Rows: y, Len: 2}},
		{"want rows (R*4, C)", Tokens{Rows: x, Len: 4, Weights: v}, Tokens{Rows: y, Len: 2}},
		{"want rows (R*2, C)", one, Tokens{Rows: v, Len: 2}},
		{"first token must be in [0, 2) (got 2)", one, Tokens{Rows: y, Len: 2, First: 2}},
		{"as many channels (got 4 and 3)", one, Tokens{Rows: narrow, Len: 2}},
		{"lengths must have shape (4)", one, Tokens{Rows: y, Len: 1, Lengths: lengths}},
		{"weights must have shape (4)", one, Tokens{Rows: y, Len: 2, Weights: v}},
		{"operand 1 is nil", one, Tokens{Len: 2}},
	} {
		optest.BuildError(t, c.want, c.want, func() { MaxSim(c.images, c.texts) })
	}
	optest.BuildError(t, "token softmax", "want rows (R*2, C)", func() { Tokens{Rows: x, Len: 2}.Softmax(v) })
	optest.BuildError(t, "token mean", "first token must be in", func() { Tokens{Rows: x, Len: 2, First: -1}.Mean() })
	for name, build := range map[string]func(ns gorgonia.Nodes) *gorgonia.Node{
		"maxsim": func(ns gorgonia.Nodes) *gorgonia.Node {
			return MaxSim(Tokens{Rows: ns[0], Len: 3, Weights: ns[3], Lengths: ns[4]}, Tokens{Rows: ns[1], Len: 2})
		},
		"token mean": func(ns gorgonia.Nodes) *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3, Lengths: ns[4]}.Mean() },
	} {
		g, ns := optest.Nodes(in)
		m := optest.Machine(t, g, ns, in, build(ns))
		if err := m.RunAll(); err == nil || !strings.Contains(err.Error(), "length 4 of sequence 1: want at most 3") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// TestHash: variants that differ in one argument are different nodes.
func TestHash(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 4))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 12, 4), optest.F32s(r, "y", 12, 4), optest.F32s(r, "v", 12), optest.I32s("four", make([]int32, 4), 4), optest.F32s(r, "logits", 12, 1),
		optest.F32s(r, "weight", 8, 8), optest.F32s(r, "bias", 8), optest.F32s(r, "values", 4)})
	x := Tokens{Rows: ns[0], Len: 3, Weights: ns[2]}
	cross := func(how Cross) func() *gorgonia.Node {
		return func() *gorgonia.Node { return CrossAttention(x, Tokens{Rows: ns[1], Len: 3}, how) }
	}
	recurrent := func(how Recurrent) func() *gorgonia.Node {
		how.Weight, how.Bias = ns[5], ns[6]
		return func() *gorgonia.Node { return RecurrentAttention(x, Tokens{Rows: ns[1], Len: 3}, how) }
	}
	negative := func(how Negative) func() *gorgonia.Node {
		if how.Boundary == nil {
			how.Boundary = ns[6]
		}
		return func() *gorgonia.Node {
			scores, _ := NegativeAttention(x, Tokens{Rows: ns[1], Len: 3}, how)
			return scores
		}
	}
	wordPatch := func(how WordPatch) func() *gorgonia.Node {
		return func() *gorgonia.Node { return WordPatchScores(x, Tokens{Rows: ns[1], Len: 3}, how) }
	}
	optest.CheckHashes(t, map[string][]func() *gorgonia.Node{
		"word patch": {
			wordPatch(WordPatch{Scale: 1, Context: .1, Temperature: .1}), wordPatch(WordPatch{Scale: 2, Context: .1, Temperature: .1}), wordPatch(WordPatch{Scale: 1, Context: .2, Temperature: .1}),
			wordPatch(WordPatch{Scale: 1, Context: .1, Temperature: .2}), wordPatch(WordPatch{Scale: 1, Context: .1, Temperature: .1, Sum: true}),
			func() *gorgonia.Node {
				return WordPatchScores(x, Tokens{Rows: ns[1], Len: 3, First: 1}, WordPatch{Scale: 1, Context: .1, Temperature: .1})
			},
		},
		"similarity vectors": vectorsVariants(),
		"cross": {
			cross(Cross{Scale: 9}), cross(Cross{Scale: 4}), cross(Cross{Scale: 9, ImageQueries: true}), cross(Cross{Scale: 9, Pool: 6}),
			cross(Cross{Scale: 9, Focal: true}), cross(Cross{Scale: 9, Attention: ns[1]}), cross(Cross{Scale: 9, Similarity: ns[1]}),
			func() *gorgonia.Node {
				return CrossAttention(x, Tokens{Rows: ns[1], Len: 3, First: 1}, Cross{Scale: 9})
			},
		},
		"recurrent": {
			recurrent(Recurrent{Scale: 9, Steps: 3}), recurrent(Recurrent{Scale: 4, Steps: 3}), recurrent(Recurrent{Scale: 9, Steps: 2}), recurrent(Recurrent{Scale: 9, Steps: 3, ImageQueries: true}),
			recurrent(Recurrent{Scale: 9, Steps: 3, Pool: 6}), recurrent(Recurrent{Scale: 9, Steps: 3, Unit: true}), recurrent(Recurrent{Scale: 9, Steps: 3, Attention: ns[1]}), recurrent(Recurrent{Scale: 9, Steps: 3, Similarity: ns[1]}),
		},
		"negative": {
			negative(Negative{Scale: 20}), negative(Negative{Scale: 9}), negative(Negative{Scale: 20, At: 1}), negative(Negative{Scale: 20, Smooth: 5}),
			negative(Negative{Scale: 20, Attention: ns[1]}), negative(Negative{Scale: 20, Similarity: ns[1]}),
		},
		"maxsim": {
			func() *gorgonia.Node { return MaxSim(x, Tokens{Rows: ns[1], Len: 3}) },
			func() *gorgonia.Node { return MaxSim(x, Tokens{Rows: ns[1], Len: 4}) },
			func() *gorgonia.Node { return MaxSim(x, Tokens{Rows: ns[1], Len: 3, First: 1}) },
			func() *gorgonia.Node { return MaxSim(x, Tokens{Rows: ns[1], Len: 3, Lengths: ns[3]}) },
			func() *gorgonia.Node { return MaxSim(x, Tokens{Rows: ns[1], Len: 3, Weights: ns[2]}) },
			func() *gorgonia.Node { return MaxSim(Tokens{Rows: ns[1], Len: 3}, x) },
		},
		"weights": {
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3}.Mean() },
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3}.Sum() },
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 4}.Sum() },
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3, Lengths: ns[3]}.Sum() },
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3}.Spread(ns[7]) },
			func() *gorgonia.Node { return Tokens{Rows: ns[0], Len: 3, First: 1}.Spread(ns[7]) },
			func() *gorgonia.Node { return Tokens{Len: 3, First: 1}.Softmax(ns[4]) },
			func() *gorgonia.Node { return Tokens{Len: 3}.Softmax(ns[4]) },
		},
	})
}

// TestCases: see optest.CheckCases.
func TestCases(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 5))
	p := problem{n: 40, m: 60, channels: 16}
	p.images, p.texts = randomSide(r, p.n, 9, p.channels, true, true), randomSide(r, p.m, 12, p.channels, true, true)
	in := p.inputs()
	soft := []optest.Input{optest.F32s(r, "logits", 4000, 1), optest.I32s("lengths", optest.RandomInts(r, 400, 11), 400)}
	across := randomCross(r, 31, 40, 60, 9, 12, 16)
	focal := randomCross(r, 32+4, 40, 60, 9, 12, 16)
	reasoned, filtered := randomVectors(r, 2+4+8, 40, 60, 9, 12, 16, 8), randomVectors(r, 4+16, 40, 60, 9, 12, 16, 8)
	recurrent := randomRecurrent(r, 4+8+16+32+64, 40, 60, 9, 12, 16)
	negative := randomNegative(r, 2+4+8+16, 40, 60, 9, 12, 16)
	patches := randomWordPatch(r, 2+4+8, 40, 60, 9, 12, 16)
	optest.CheckCases(t, []optest.Case{
		{Name: "negative", Inputs: negative.inputs(), WRT: negative.rowsOf(negative.inputs()), GEMM: true, Build: negative.build},
		{Name: "negative moments", Inputs: negative.inputs(), GEMM: true, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			_, moments := negative.nodes(ns)
			return moments
		}},
		{Name: "mismatch samples", Inputs: []optest.Input{optest.F32s(r, "scores", 90, 90), optest.F32s(r, "moments", 90, 90, 3)}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return MismatchSamples(ns[0], ns[1])
		}},
		{Name: "word patch", Inputs: patches.inputs(), WRT: floats(patches.inputs()), GEMM: true, Build: patches.build},
		{Name: "recurrent", Inputs: recurrent.inputs(), WRT: floats(recurrent.inputs()), GEMM: true, Build: recurrent.build},
		{Name: "cross", Inputs: across.inputs(), WRT: floats(across.inputs()), GEMM: true, Build: across.build},
		{Name: "similarity vectors by reasoning", Inputs: reasoned.inputs(), WRT: floats(reasoned.inputs()), GEMM: true, Build: reasoned.build},
		{Name: "similarity vectors by filtration", Inputs: filtered.inputs(), WRT: floats(filtered.inputs()), GEMM: true, Build: filtered.build},
		{Name: "cross focal", Inputs: focal.inputs(), WRT: floats(focal.inputs()), GEMM: true, Build: focal.build},
		{Name: "maxsim", Inputs: in, WRT: floats(in), GEMM: true, Build: p.build},
		{Name: "token softmax", Inputs: soft, WRT: []int{0}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Tokens{Len: 10, First: 1, Lengths: ns[1]}.Softmax(ns[0])
		}},
		{Name: "token spread", Inputs: append(slices.Clone(soft), optest.F32s(r, "values", 400)), Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Tokens{Rows: ns[0], Len: 10, Lengths: ns[1]}.Spread(ns[2])
		}},
		{Name: "token mean", Inputs: soft, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Tokens{Rows: ns[0], Len: 10, Lengths: ns[1]}.Mean()
		}},
	})
}

// TestWeights: those of tokens that take part are equal or a softmax, all others 0.
func TestWeights(t *testing.T) {
	in := []optest.Input{optest.In("logits", []int{9, 1}, []float32{9, 1, 1, 9, 9, 9, 9, 0, float32(math.Log(3))}), optest.I32s("lengths", []int32{3, 0, 3}, 3)}
	for _, c := range []struct {
		name  string
		build func(q Tokens, logits *gorgonia.Node) *gorgonia.Node
		want  []float32
	}{
		{"mean", func(q Tokens, _ *gorgonia.Node) *gorgonia.Node { return q.Mean() }, []float32{0, .5, .5, 0, 0, 0, 0, .5, .5}},
		{"sum", func(q Tokens, _ *gorgonia.Node) *gorgonia.Node { return q.Sum() }, []float32{0, 1, 1, 0, 0, 0, 0, 1, 1}},
		{"softmax", Tokens.Softmax, []float32{0, .5, .5, 0, 0, 0, 0, .25, .75}},
	} {
		build := func(ns gorgonia.Nodes) *gorgonia.Node {
			return c.build(Tokens{Rows: ns[0], Lengths: ns[1], Len: 3, First: 1}, ns[0])
		}
		optest.Near(t, c.name, optest.Eval(t, build, in...).F32, c.want, 1e-6)
	}
	spread := func(ns gorgonia.Nodes) *gorgonia.Node {
		return Tokens{Rows: ns[0], Lengths: ns[1], Len: 3, First: 1}.Spread(ns[2])
	}
	values := append(slices.Clone(in), optest.In("values", []int{3}, []float32{2, 3, 4}))
	optest.Near(t, "spread", optest.Eval(t, spread, values...).F32, []float32{0, 2, 2, 0, 0, 0, 0, 4, 4}, 0)
	_, ns := optest.Nodes(append(values, optest.In("two", []int{2}, make([]float32, 2))))
	optest.BuildError(t, "spread", "values must have shape (3)", func() { Tokens{Rows: ns[0], Len: 3}.Spread(ns[3]) })
	optest.CheckGrad(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		return Tokens{Lengths: ns[1], Len: 3, First: 1}.Softmax(ns[0])
	}, []int{0}, 1e-2, 1e-2, in...)
}
