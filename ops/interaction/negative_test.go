package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// negativeProblem is a NegativeAttention; nil rows under metrics are left out.
type negativeProblem struct {
	crossProblem
	smooth float32
	bounds []float32
	at     int
}

func (p negativeProblem) inputs() []optest.Input {
	return append(p.crossProblem.inputs(), optest.In("boundary", []int{len(p.bounds)}, p.bounds))
}

func (p negativeProblem) nodes(ns gorgonia.Nodes) (scores, moments *gorgonia.Node) {
	sides := [2]Tokens{}
	named := map[string]*gorgonia.Node{}
	for _, n := range ns {
		named[n.Name()] = n
	}
	for k, s := range []problemSide{p.images, p.texts} {
		name := []string{"images", "texts"}[k]
		sides[k] = Tokens{Rows: named[name], Lengths: named[name+" lengths"], Len: s.len, First: s.first}
	}
	return NegativeAttention(sides[0], sides[1], Negative{
		Scale: p.how.Scale, Boundary: named["boundary"], At: p.at, Smooth: p.smooth, Attention: named["attention"], Similarity: named["similarity"]})
}

func (p negativeProblem) build(ns gorgonia.Nodes) *gorgonia.Node {
	scores, _ := p.nodes(ns)
	return scores
}

// naive are the scores and moments by the definition: contexts are formed.
func (p negativeProblem) naive() (scores, moments []float64) {
	dot := func(x, y []float64) (s float64) {
		for i := range x {
			s += x[i] * y[i]
		}
		return s
	}
	rows := func(s problemSide, of []float32, i int) (list [][]float64) {
		for _, t := range s.tokens(i) {
			var r []float64
			for _, v := range of[(i*s.len+t)*p.channels:][:p.channels] {
				r = append(r, float64(v))
			}
			list = append(list, r)
		}
		return list
	}
	under := func(x []float32) []float32 {
		if x == nil {
			return p.images.rows
		}
		return x
	}
	lambda, bound := float64(p.how.Scale), float64(p.bounds[p.at])
	for i := range p.n {
		for j := range p.m {
			q, k := rows(p.texts, p.texts.rows, j), rows(p.images, p.images.rows, i)
			ka, ks := rows(p.images, under(p.attention), i), rows(p.images, under(p.similarity), i)
			if len(q) == 0 || len(k) == 0 {
				scores, moments = append(scores, 0), append(moments, 0, 0, 0)
				continue
			}
			norms, above := make([]float64, len(k)), make([]float64, len(q))
			leaky := func(v float64) float64 { return max(v, .1*v) }
			for c := range k {
				for a := range q {
					norms[c] += leaky(dot(q[a], ka[c])) * leaky(dot(q[a], ka[c]))
				}
			}
			sum, squares, score := 0., 0., 0.
			for a := range q {
				top := math.Inf(-1)
				for c := range k {
					top = max(top, dot(q[a], ks[c]))
				}
				above[a], sum, squares = top-bound, sum+top, squares+top*top
			}
			for a := range q {
				// Negative effects.
				mismatch := above[a]
				if p.smooth > 0 {
					share := 0.
					mismatch = 0
					for l := range q {
						e := math.Exp(float64(p.smooth) * dot(q[a], q[l]))
						share, mismatch = share+e, mismatch+e*above[l]
					}
					mismatch /= share
				}
				if mismatch < 0 {
					score += above[a]
				}
				// Positive effects by features, and by relevance.
				context, scored, kept, relevance, share := make([]float64, p.channels), 0., 0., 0., 0.
				for c := range k {
					s, b := dot(q[a], ks[c]), dot(q[a], ka[c])
					if b > bound {
						e := math.Exp(lambda * (b - bound))
						kept, scored = kept+e, scored+e*s
						for d := range context {
							context[d] += e * k[c][d]
						}
					}
					e := math.Exp(lambda * leaky(b) / (math.Sqrt(norms[c]) + 1e-8))
					relevance, share = relevance+e*s, share+e
				}
				if kept > 0 {
					score += scored / max(1e-8, math.Sqrt(dot(q[a], q[a])*dot(context, context)))
				}
				score += relevance / share
			}
			scores, moments = append(scores, score/float64(len(q))), append(moments, float64(len(q)), sum, squares)
		}
	}
	return scores, moments
}

// randomNegative is a problem of a kind: bits of kind choose what there is.
func randomNegative(r *rand.Rand, kind, n, m, tokens, words, channels int) negativeProblem {
	p := negativeProblem{crossProblem: randomCross(r, kind&(4|8|16), n, m, tokens, words, channels), bounds: []float32{-.2, .3}, at: kind & 1}
	if kind&2 != 0 {
		p.smooth = 5
	}
	return p
}

// rowsOf are the inputs that have gradients.
func (p negativeProblem) rowsOf(in []optest.Input) (at []int) {
	return slices.DeleteFunc(floats(in), func(i int) bool { return in[i].Name == "boundary" })
}

// TestNegative compares scores and moments of random problems of every kind with the definition, and
// gradients with finite differences of the definition.
func TestNegative(t *testing.T) {
	r := rand.New(rand.NewPCG(72, 1))
	for kind := range 96 {
		p := randomNegative(r, kind%32, 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(5), 3+r.IntN(4))
		in := p.inputs()
		name := fmt.Sprintf("problem %d", kind)
		scores, moments := p.naive()
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, narrow(scores), 1e-5)
		optest.Near(t, name+", moments", optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			_, m := p.nodes(ns)
			return m
		}, in...).F32, narrow(moments), 1e-6)
		checkDefined(t, p, p.rowsOf(in), outputWeights(p.n, p.m), func() []float64 {
			scores, _ := p.naive()
			return scores
		})
		if t.Failed() {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}

// TestNegativeBlocks: scores and gradients of more than one block of either side are those of the
// definition and of the pairs alone.
func TestNegativeBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(72, 2))
	for _, kind := range []int{4, 2 + 4 + 8 + 16} {
		p := randomNegative(r, kind, 5, 7, 512/3, 90, 4)
		in := p.inputs()
		scores, _ := p.naive()
		optest.Near(t, fmt.Sprint(kind), optest.Eval(t, p.build, in...).F32, narrow(scores), 2e-5)
		pair := func(i, j int) negativeProblem {
			one := p
			one.crossProblem = p.pair(i, j)
			return one
		}
		checkPairs(t, fmt.Sprint(kind), p, p.rowsOf(in), p.n, p.m, pair, ofSide, 5e-5)
	}
}

// TestNegativeVectors are scores worked out by hand: words e1, -e1 and e2 and a region e1.
func TestNegativeVectors(t *testing.T) {
	one := func(word []float32, bound float32) float32 {
		return optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
			s, _ := NegativeAttention(Tokens{Rows: ns[0], Len: 1}, Tokens{Rows: ns[1], Len: 1}, Negative{Scale: 20, Boundary: ns[2]})
			return s
		}, optest.In("image", []int{1, 2}, []float32{1, 0}), optest.In("text", []int{1, 2}, word), optest.In("boundary", []int{1}, []float32{bound})).F32[0]
	}
	for _, c := range []struct {
		word        []float32
		bound, want float32
	}{
		{[]float32{1, 0}, .25, 2},          // f = 1, r = 1
		{[]float32{-1, 0}, .25, -2.25},     // n = -1.25, no region is left, r = -1
		{[]float32{0, 1}, .25, -.25},       // n = -0.25, r = 0
		{[]float32{.6, .8}, .25, 1.2},      // f = 0.6, r = 0.6
		{[]float32{.6, .8}, .75, .6 - .15}, // n = -0.15, r = 0.6
		{[]float32{.5, .5}, .5, .5},        // at the boundary: neither matched nor mismatched
	} {
		if got := one(c.word, c.bound); !(math.Abs(float64(got-c.want)) < 1e-6) {
			t.Errorf("word %v, boundary %v: score %v, want %v", c.word, c.bound, got, c.want)
		}
	}
}

// TestNegativeZero: tokens of zeros have a score and gradients, NaN stays NaN.
func TestNegativeZero(t *testing.T) {
	p := randomNegative(rand.New(rand.NewPCG(72, 3)), 3, 2, 2, 3, 3, 4)
	clear(p.texts.rows)
	grads, _ := optest.Gradients(t, p.build, p.rowsOf(p.inputs()), p.inputs()...)
	for k, g := range grads {
		if slices.ContainsFunc(g, func(v float32) bool { return v != v }) {
			t.Errorf("gradient %d of tokens of zeros is %v", k, g)
		}
	}
	p = randomNegative(rand.New(rand.NewPCG(72, 4)), 0, 2, 2, 3, 3, 4)
	p.texts.first, p.texts.rows[0] = 0, float32(math.NaN())
	if v := optest.Eval(t, p.build, p.inputs()...).F32; v[0] == v[0] || v[1] != v[1] {
		t.Errorf("NaN in the first text gives the scores %v", v)
	}
}

// TestMismatchSamples: texts whose own image is the best give their moments with it and with the worst.
func TestMismatchSamples(t *testing.T) {
	moments := make([]float32, 27)
	for i := range moments {
		moments[i] = float32(i)
	}
	got := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return MismatchSamples(ns[0], ns[1]) },
		// Texts 0 and 2 have their own image first, text 2 with another one; text 1 does not.
		optest.In("scores", []int{3, 3}, []float32{3, 5, -1, 1, 4, 7, 2, 3, 7}), optest.In("moments", []int{3, 3, 3}, moments)).F32
	if want := []float32{0, 1, 2, 9, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: of equal scores the first counts", got, want)
	}
	got = optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node { return MismatchSamples(ns[0], ns[1]) },
		optest.In("scores", []int{3, 3}, []float32{3, 5, -1, 1, 6, 2, 2, 3, 7}), optest.In("moments", []int{3, 3, 3}, moments)).F32
	want := make([]float32, 6)
	for _, x := range [][2]int{{0, 9}, {12, 21}, {24, 6}} {
		for k := range 3 {
			want[k] += moments[x[0]+k]
			want[3+k] += moments[x[1]+k]
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNegativeGolden compares with torch, from tools/goldens/negative.py.
func TestNegativeGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	scores := func(smooth float32, metrics bool) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			how := Negative{Scale: 20, Boundary: g("boundary"), Smooth: smooth}
			if metrics {
				how.Attention, how.Similarity = g("attention"), g("similarity")
			}
			s, _ := NegativeAttention(Tokens{Rows: g("images"), Lengths: g("index"), Len: 5, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 6, First: 1}, how)
			return s
		}
	}
	checkTorch(t, "negative.json", 1e-5, map[string]func(get) *gorgonia.Node{
		"words": scores(0, false), "words_metrics": scores(0, true), "smooth": scores(5, false), "smooth_metrics": scores(5, true),
	})
}

func TestNegativeErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(72, 5))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.F32s(r, "boundary", 2), optest.F32s(r, "scores", 3, 3), optest.F32s(r, "moments", 2, 3, 3)})
	x, y, bounds := Tokens{Rows: ns[0], Len: 3}, Tokens{Rows: ns[1], Len: 2}, ns[2]
	for _, c := range []struct {
		want string
		how  Negative
	}{
		{"want a boundary", Negative{Scale: 20}},
		{"want value 2 of the boundary (got shape (2))", Negative{Scale: 20, Boundary: bounds, At: 2}},
		{"want value 0 of the boundary (got shape (6, 4))", Negative{Scale: 20, Boundary: ns[0]}},
		{"the scale of the smoothing must be >= 0 (got -1)", Negative{Scale: 20, Boundary: bounds, Smooth: -1}},
		{"the scale of the attention must be > 0 (got 0)", Negative{Boundary: bounds}},
		{"rows of images under a metric must have shape (6, 4) (got (4, 4))", Negative{Scale: 20, Boundary: bounds, Attention: ns[1]}},
	} {
		optest.BuildError(t, c.want, c.want, func() { NegativeAttention(x, y, c.how) })
	}
	optest.BuildError(t, "scores", "want scores (N, N) (got (6, 4))", func() { MismatchSamples(ns[0], ns[4]) })
	optest.BuildError(t, "moments", "moments must have shape (3, 3, 3) (got (2, 3, 3))", func() { MismatchSamples(ns[3], ns[4]) })
}
