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

// recurrentProblem is a RecurrentAttention; nil rows under metrics are left out.
type recurrentProblem struct {
	problem
	how                   Recurrent
	attention, similarity []float32 // rows of the context
	weight, bias          []float32
}

func (p recurrentProblem) inputs() []optest.Input {
	in := p.problem.inputs()
	for k, rows := range [][]float32{p.attention, p.similarity} {
		if rows != nil {
			in = append(in, optest.In([]string{"attention", "similarity"}[k], []int{len(rows) / p.channels, p.channels}, rows))
		}
	}
	return append(in, optest.In("weight", []int{2 * p.channels, 2 * p.channels}, p.weight), optest.In("bias", []int{2 * p.channels}, p.bias))
}

func (p recurrentProblem) build(ns gorgonia.Nodes) *gorgonia.Node {
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
	how.Weight, how.Bias = named["weight"], named["bias"]
	return RecurrentAttention(sides[0], sides[1], how)
}

// naive are the scores by the definition: contexts are formed, and joined with their queries.
func (p recurrentProblem) naive() (scores []float64) {
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
	under := func(x []float32, or []float32) []float32 {
		if x == nil {
			return or
		}
		return x
	}
	for i := range p.n {
		for j := range p.m {
			q, k, side, at := rows(p.texts, p.texts.rows, j), rows(p.images, p.images.rows, i), p.images, i
			if p.how.ImageQueries {
				q, k, side, at = k, q, p.texts, j
			}
			ka, ks := rows(side, under(p.attention, side.rows), at), rows(side, under(p.similarity, side.rows), at)
			if len(q) == 0 || len(k) == 0 {
				scores = append(scores, 0)
				continue
			}
			score, x := 0., q
			for range p.how.Steps {
				norms := make([]float64, len(k))
				leaky := func(a, c int) float64 {
					v := dot(x[a], ka[c])
					return max(v, .1*v)
				}
				for c := range k {
					for a := range x {
						norms[c] += leaky(a, c) * leaky(a, c)
					}
				}
				var r []float64
				var next [][]float64
				for a := range x {
					sum, context, under := 0., make([]float64, p.channels), make([]float64, p.channels)
					for c := range k {
						e := math.Exp(float64(p.how.Scale) * leaky(a, c) / (math.Sqrt(norms[c]) + 1e-8))
						sum += e
						for d := range context {
							context[d], under[d] = context[d]+e*k[c][d], under[d]+e*ks[c][d]
						}
					}
					for d := range context {
						context[d], under[d] = context[d]/sum, under[d]/sum
					}
					r = append(r, dot(q[a], under)/max(1e-8, math.Sqrt(dot(q[a], q[a])*dot(context, context))))
					both, refined := append(slices.Clone(x[a]), context...), make([]float64, p.channels)
					linear := func(row int) float64 {
						sum := float64(p.bias[row])
						for d, v := range both {
							sum += v * float64(p.weight[row*2*p.channels+d])
						}
						return sum
					}
					for d := range refined {
						g := 1 / (1 + math.Exp(-linear(d)))
						refined[d] = g*x[a][d] + (1-g)*math.Tanh(linear(p.channels+d))
					}
					if length := math.Sqrt(dot(refined, refined)); p.how.Unit {
						for d := range refined {
							refined[d] /= length + 1e-8
						}
					}
					next = append(next, refined)
				}
				sum := 0.
				for _, v := range r {
					if p.how.Pool > 0 {
						sum += math.Exp(float64(p.how.Pool) * v)
					} else {
						sum += v / float64(len(r))
					}
				}
				if p.how.Pool > 0 {
					sum = math.Log(sum) / float64(p.how.Pool)
				}
				score, x = score+sum, next
			}
			scores = append(scores, score)
		}
	}
	return scores
}

// randomRecurrent is a problem of a kind: bits of kind choose what there is.
func randomRecurrent(r *rand.Rand, kind, n, m, tokens, words, channels int) recurrentProblem {
	c := randomCross(r, kind&^(8|16|32), n, m, tokens, words, channels)
	p := recurrentProblem{problem: c.problem, how: Recurrent{ImageQueries: c.how.ImageQueries, Scale: 4, Pool: c.how.Pool, Steps: 2 + kind>>6&1, Unit: kind&32 != 0}}
	context := p.images
	if p.how.ImageQueries {
		context = p.texts
	}
	under := func() []float32 { return optest.F32s(r, "", len(context.rows)/channels, channels).Data.([]float32) }
	if kind&8 != 0 {
		p.attention = under()
	}
	if kind&16 != 0 {
		p.similarity = under()
	}
	p.weight, p.bias = optest.F32s(r, "", 4*channels*channels).Data.([]float32), optest.F32s(r, "", 2*channels).Data.([]float32)
	return p
}

// TestRecurrent compares scores of random problems of every kind with the definition, and gradients
// with finite differences of the definition: the steps make those of float32 too coarse.
func TestRecurrent(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 1))
	for kind := range 128 {
		p := randomRecurrent(r, kind, 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(5), 3+r.IntN(4))
		in := p.inputs()
		name := fmt.Sprintf("problem %d", kind)
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, narrow(p.naive()), 1e-5)
		checkDefined(t, p, floats(in), outputWeights(p.n, p.m), p.naive)
		if t.Failed() {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}

// TestRecurrentBlocks: scores of more than one block of either side are those of the definition,
// and gradients those of the pairs alone.
func TestRecurrentBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 2))
	for _, kind := range []int{4, 1 + 4 + 64, 8 + 16 + 32 + 4 + 64, 1 + 2 + 8 + 64} {
		n, m := 18, 5 // images and texts: more sequences of the context than a block has, more tokens of queries
		if kind&1 != 0 {
			n, m = m, n
		}
		p := randomRecurrent(r, kind, n, m, 30, 40, 4)
		in := p.inputs()
		optest.Near(t, fmt.Sprint(kind), optest.Eval(t, p.build, in...).F32, narrow(p.naive()), 2e-5)
		checkPairs(t, fmt.Sprint(kind), p, floats(in), p.n, p.m, p.pair, func(input string, i, j int) int {
			switch {
			case input == "weight" || input == "bias":
				return 0
			case p.how.ImageQueries && (input == "attention" || input == "similarity"):
				return j
			}
			return ofSide(input, i, j)
		}, 5e-5)
	}
}

// pair is the problem of one image and text.
func (p recurrentProblem) pair(i, j int) recurrentProblem {
	one := crossProblem{problem: p.problem}.pair(i, j)
	at, n := i, p.images.len*p.channels
	if p.how.ImageQueries {
		at, n = j, p.texts.len*p.channels
	}
	rows := func(x []float32) []float32 {
		if x == nil {
			return nil
		}
		return x[at*n:][:n]
	}
	p.problem, p.attention, p.similarity = one.problem, rows(p.attention), rows(p.similarity)
	return p
}

// TestRecurrentStart: with weights of 0 and a bias that opens the gate, queries stay as they are, and K
// steps have K times the score of cross attention.
func TestRecurrentStart(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 3))
	for kind := range 8 {
		p := randomRecurrent(r, kind, 5, 6, 7, 8, 6)
		clear(p.weight)
		for i := range p.bias {
			p.bias[i] = 40
		}
		once := crossProblem{problem: p.problem, how: Cross{ImageQueries: p.how.ImageQueries, Scale: p.how.Scale, Pool: p.how.Pool}}
		want := optest.Eval(t, once.build, once.inputs()...).F32
		for i := range want {
			want[i] *= 2
		}
		optest.Near(t, fmt.Sprint(kind), optest.Eval(t, p.build, p.inputs()...).F32, want, 1e-6)
	}
}

// TestRecurrentZero: tokens of zeros have a score and gradients, NaN stays NaN.
func TestRecurrentZero(t *testing.T) {
	p := randomRecurrent(rand.New(rand.NewPCG(71, 4)), 32+64, 2, 2, 3, 3, 4)
	clear(p.texts.rows)
	clear(p.weight)
	clear(p.bias)
	grads, _ := optest.Gradients(t, p.build, floats(p.inputs()), p.inputs()...)
	for k, g := range grads {
		if slices.ContainsFunc(g, func(v float32) bool { return v != v }) {
			t.Errorf("gradient %d of tokens of zeros is %v", k, g)
		}
	}
	p = randomRecurrent(rand.New(rand.NewPCG(71, 5)), 64, 2, 2, 3, 3, 4)
	p.texts.first, p.texts.rows[0] = 0, float32(math.NaN())
	if v := optest.Eval(t, p.build, p.inputs()...).F32; v[0] == v[0] || v[1] != v[1] {
		t.Errorf("NaN in the first text gives the scores %v", v)
	}
}

// TestRecurrentStale: what a run with NaN leaves in the working memory of images without a token
// does not reach the next one.
func TestRecurrentStale(t *testing.T) {
	p := randomRecurrent(rand.New(rand.NewPCG(71, 8)), 4+64, 3, 3, 4, 4, 4)
	for i := range p.images.lengths {
		p.images.lengths[i], p.texts.lengths[i] = 4, 4
	}
	c := optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}
	m, outputs := c.Compile(t, optest.Engine)
	old := p.images.rows[len(p.images.rows)-1]
	p.images.rows[len(p.images.rows)-1] = float32(math.NaN())
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	p.images.rows[len(p.images.rows)-1], p.images.lengths[2] = old, 0
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	for i, n := range outputs {
		v, err := m.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(v.F32, func(v float32) bool { return v != v }) {
			t.Errorf("result %d has NaN from the run before: %v", i, v.F32)
		}
	}
}

// TestRecurrentGolden compares with torch, from tools/goldens/recurrent.py.
func TestRecurrentGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	scores := func(how Recurrent, metrics bool) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			how := how
			if how.Weight, how.Bias = g("weight"), g("bias"); metrics {
				how.Attention, how.Similarity = g("attention"), g("similarity")
			}
			return RecurrentAttention(Tokens{Rows: g("images"), Lengths: g("index"), Len: 5, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 6, First: 1}, how)
		}
	}
	checkTorch(t, "recurrent.json", 5e-5, map[string]func(get) *gorgonia.Node{ // rounding grows from step to step
		"t2i":         scores(Recurrent{Scale: 9, Steps: 3}, false),
		"i2t":         scores(Recurrent{ImageQueries: true, Scale: 4, Steps: 3}, false),
		"t2i_metrics": scores(Recurrent{Scale: 9, Steps: 2, Unit: true}, true),
		"i2t_metrics": scores(Recurrent{ImageQueries: true, Scale: 4, Pool: 5, Steps: 3, Unit: true}, true),
	})
}

// checkTorch is optest.CheckTorch with a tolerance.
func checkTorch(t *testing.T, file string, tol float64, builds map[string]func(get func(name string) *gorgonia.Node) *gorgonia.Node) {
	t.Helper()
	cases := optest.TorchCases(t, file)
	if len(cases) != len(builds) {
		t.Errorf("%d cases, %d of them are tested", len(cases), len(builds))
	}
	for name, c := range cases {
		want := map[string]string{}
		for in := range c {
			if _, ok := c["d"+in]; ok {
				want[in] = "d" + in
			}
		}
		c.Check(t, tol, builds[name], want)
	}
}

func TestRecurrentErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 6))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.F32s(r, "weight", 8, 8), optest.F32s(r, "bias", 8)})
	x, y, weight, bias := Tokens{Rows: ns[0], Len: 3}, Tokens{Rows: ns[1], Len: 2}, ns[2], ns[3]
	for _, c := range []struct {
		want string
		how  Recurrent
	}{
		{"scale of the attention must be > 0 (got 0)", Recurrent{Steps: 3, Weight: weight, Bias: bias}},
		{"the steps must be >= 2 (got 1)", Recurrent{Scale: 9, Steps: 1, Weight: weight, Bias: bias}},
		{"want the weight and the bias", Recurrent{Scale: 9, Steps: 3, Weight: weight}},
		{"want the weight and the bias", Recurrent{Scale: 9, Steps: 3, Bias: bias}},
		{"the weight of the memory unit must have shape (8, 8) (got (4, 4))", Recurrent{Scale: 9, Steps: 3, Weight: ns[1], Bias: bias}},
		{"the bias of the memory unit must have shape (8) (got (8, 8))", Recurrent{Scale: 9, Steps: 3, Weight: weight, Bias: weight}},
		{"rows of images under a metric must have shape (6, 4) (got (4, 4))", Recurrent{Scale: 9, Steps: 3, Weight: weight, Bias: bias, Attention: ns[1]}},
		{"rows of texts under a metric must have shape (4, 4) (got (6, 4))", Recurrent{ImageQueries: true, Scale: 9, Steps: 3, Weight: weight, Bias: bias, Similarity: ns[0]}},
	} {
		optest.BuildError(t, c.want, c.want, func() { RecurrentAttention(x, y, c.how) })
	}
}

// TestRecurrentBF16: products in bfloat16 give scores and gradients near those of float32.
func TestRecurrentBF16(t *testing.T) {
	p := randomRecurrent(rand.New(rand.NewPCG(71, 7)), 31+64, 4, 5, 6, 7, 64)
	for i := range p.weight {
		p.weight[i] *= .1
	}
	checkBF16(t, optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}, 4e-2)
}
