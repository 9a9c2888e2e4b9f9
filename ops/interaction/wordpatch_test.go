package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// wordPatchProblem is a WordPatchScores of a problem without weights.
type wordPatchProblem struct {
	problem
	how WordPatch
}

// build is WordPatchScores of inputs.
func (p wordPatchProblem) build(ns gorgonia.Nodes) *gorgonia.Node {
	images, texts := p.sides(ns)
	return WordPatchScores(images, texts, p.how)
}

// naive are the scores by the definition: summaries are formed.
func (p wordPatchProblem) naive() (scores []float32) {
	for i := range p.n {
		for j := range p.m {
			scores = append(scores, float32(p.score(p.rowsOf(p.images, i), p.rowsOf(p.texts, j))))
		}
	}
	return scores
}

// rowsOf are the tokens of sequence i of a side that take part.
func (p problem) rowsOf(s problemSide, i int) (rows [][]float64) {
	for _, t := range s.tokens(i) {
		var row []float64
		for _, v := range s.rows[(i*s.len+t)*p.channels:][:p.channels] {
			row = append(row, float64(v))
		}
		rows = append(rows, row)
	}
	return rows
}

// score is that of an image of patches with a text of words.
func (p wordPatchProblem) score(patches, words [][]float64) float64 {
	if len(patches) == 0 || len(words) == 0 {
		return 0
	}
	e, ofWord, ofPatch := make([][]float64, len(words)), make([]float64, len(words)), make([]float64, len(patches))
	for i, w := range words {
		for j, x := range patches {
			v := math.Exp(float64(p.how.Scale) * dot(w, x))
			e[i], ofWord[i], ofPatch[j] = append(e[i], v), ofWord[i]+v, ofPatch[j]+v
		}
	}
	tau1, tau := float64(p.how.Context), float64(p.how.Temperature)
	// one is exp(cos/tau) of a token with the summary of others that it attends to so.
	one := func(x []float64, others [][]float64, attention func(k int) float64) float64 {
		sum, summary := 0., make([]float64, len(x))
		for k := range others {
			sum += math.Exp(attention(k) / tau1)
		}
		for k, y := range others {
			for d := range y {
				summary[d] += math.Exp(attention(k)/tau1) / sum * y[d]
			}
		}
		length := math.Sqrt(dot(x, x) * dot(summary, summary))
		if length == 0 {
			return 1
		}
		return math.Exp(dot(x, summary) / length / tau)
	}
	overWords, overPatches := 0., 0.
	for i, w := range words {
		overWords += one(w, patches, func(j int) float64 { return e[i][j] / ofPatch[j] })
	}
	for j, x := range patches {
		overPatches += one(x, words, func(i int) float64 { return e[i][j] / ofWord[i] })
	}
	if p.how.Sum {
		return math.Log(overWords + overPatches)
	}
	return math.Log(overWords/float64(len(words)) + overPatches/float64(len(patches)))
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// randomWordPatch is a problem of a kind: bits of kind choose what there is.
func randomWordPatch(r *rand.Rand, kind, n, m, tokens, words, channels int) wordPatchProblem {
	p := wordPatchProblem{problem: problem{n: n, m: m, channels: channels}, how: WordPatch{Scale: 1, Context: .3, Temperature: .4, Sum: kind&1 != 0}}
	if kind&2 != 0 {
		p.how.Scale = 4
	}
	p.images = randomSide(r, n, tokens, channels, kind&4 != 0, false)
	p.texts = randomSide(r, m, words, channels, kind&8 != 0, false)
	return p
}

// TestWordPatch compares scores of random problems of every kind with the definition and gradients with
// finite differences: with and without lengths, empty sequences.
func TestWordPatch(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 1))
	for i := range 64 {
		p := randomWordPatch(r, i%16, 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(5), 3+r.IntN(4))
		in := p.inputs()
		name := fmt.Sprintf("problem %d", i)
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, p.naive(), 1e-5)
		optest.CheckGrad(t, p.build, floats(in), 1e-3, 2e-2, in...)
		if t.Failed() {
			t.Fatalf("%s: %+v", name, p)
		}
	}
}

// TestWordPatchBlocks: scores and gradients of more than one block of either side are those of the
// pairs alone.
func TestWordPatchBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 2))
	for name, p := range map[string]wordPatchProblem{
		"several blocks": randomWordPatch(r, 4+8, 5, 7, 256/3, 60, 4),
		"long images":    randomWordPatch(r, 2+8, 3, 4, 256+9, 70, 4),
		"long texts":     randomWordPatch(r, 1+4, 4, 3, 70, 256+5, 4),
	} {
		in := p.inputs()
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, p.naive(), 2e-5)
		pair := func(i, j int) wordPatchProblem {
			one := p
			one.problem = crossProblem{problem: p.problem}.pair(i, j).problem
			return one
		}
		checkPairs(t, name, p, floats(in), p.n, p.m, pair, ofSide, 5e-5)
	}
}

// TestWordPatchZeros: tokens of zeros have the cosine 0 and no gradient, NaN stays NaN.
func TestWordPatchZeros(t *testing.T) {
	p := randomWordPatch(rand.New(rand.NewPCG(73, 3)), 0, 2, 3, 3, 2, 4)
	p.texts.rows[5] = float32(math.NaN())
	if v := optest.Eval(t, p.build, p.inputs()...).F32; v[0] == v[0] || v[1] != v[1] {
		t.Errorf("NaN of a word became the scores %v", v)
	}
	p.texts.rows[5] = 1
	clear(p.images.rows)
	optest.Near(t, "scores", optest.Eval(t, p.build, p.inputs()...).F32, []float32{math.Ln2, math.Ln2, math.Ln2, math.Ln2, math.Ln2, math.Ln2}, 1e-6)
	grads, _ := optest.Gradients(t, p.build, floats(p.inputs()), p.inputs()...)
	for _, g := range grads {
		for _, v := range g {
			if v != 0 {
				t.Fatalf("tokens of zeros have the gradients %v", grads)
			}
		}
	}
}

// TestWordPatchSteep: temperatures and scales at which exponentials leave the range of float32 give the scores of the definition, and
// finite gradients.
func TestWordPatchSteep(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 4))
	for kind := range 4 {
		p := randomWordPatch(r, kind, 3, 5, 3, 3, 4)
		p.images.rows, p.texts.rows = optest.UnitRows(r, 9, 4), optest.UnitRows(r, 15, 4)
		for i := range p.texts.rows[24:] { // the others are nearer to everything
			p.texts.rows[24+i] /= 100
		}
		p.how.Scale, p.how.Context, p.how.Temperature = 300, .02, .01
		optest.Near(t, fmt.Sprint(kind), optest.Eval(t, p.build, p.inputs()...).F32, p.naive(), 1e-4)
		grads, _ := optest.Gradients(t, p.build, floats(p.inputs()), p.inputs()...)
		for _, g := range grads {
			for _, v := range g {
				if v-v != 0 {
					t.Fatalf("gradients %v", grads)
				}
			}
		}
	}
}

func TestWordPatchErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 5))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.F32s(r, "narrow", 4, 3)})
	x, y, how := Tokens{Rows: ns[0], Len: 3}, Tokens{Rows: ns[1], Len: 2}, WordPatch{Scale: 1, Context: .1, Temperature: .1}
	for _, c := range []struct {
		want          string
		images, texts Tokens
		how           WordPatch
	}{
		{"want rows (R*4, C)", Tokens{Rows: ns[0], Len: 4}, y, how},
		{"as many channels (got 4 and 3)", x, Tokens{Rows: ns[2], Len: 2}, how},
		{"scale of the attention must be > 0 (got 0)", x, y, WordPatch{Context: .1, Temperature: .1}},
		{"temperature of the summaries must be > 0 (got 0)", x, y, WordPatch{Scale: 1, Temperature: .1}},
		{"temperature of the cosines must be > 0 (got -1)", x, y, WordPatch{Scale: 1, Context: .1, Temperature: -1}},
	} {
		optest.BuildError(t, c.want, c.want, func() { WordPatchScores(c.images, c.texts, c.how) })
	}
	optest.RunError(t, "length 4 of sequence 1: want at most 3", func(ns gorgonia.Nodes) *gorgonia.Node {
		return WordPatchScores(Tokens{Rows: ns[0], Len: 3, Lengths: ns[2]}, Tokens{Rows: ns[1], Len: 2}, how)
	}, optest.F32s(r, "x", 6, 4), optest.F32s(r, "y", 4, 4), optest.I32s("lengths", []int32{2, 4}, 2))
}

// TestWordPatchBF16: products in bfloat16 give scores and gradients near those of float32.
func TestWordPatchBF16(t *testing.T) {
	p := randomWordPatch(rand.New(rand.NewPCG(73, 6)), 4+8, 4, 5, 6, 7, 64)
	checkBF16(t, optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}, 4e-2)
}

// TestWordPatchGolden compares with torch, from tools/goldens/vipmm_losses.py.
func TestWordPatchGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	scores := func(how WordPatch) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			return WordPatchScores(Tokens{Rows: g("images"), Lengths: g("index"), Len: 5, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 6, First: 1}, how)
		}
	}
	optest.CheckTorchNear(t, "wordpatch.json", 1e-5, map[string]func(get) *gorgonia.Node{
		"mean":   scores(WordPatch{Scale: 1, Context: .25, Temperature: .5}),
		"scaled": scores(WordPatch{Scale: 4, Context: .125, Temperature: .25}),
		"sum":    scores(WordPatch{Scale: 1, Context: .5, Temperature: .5, Sum: true}),
	})
}
