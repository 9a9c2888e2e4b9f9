package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// plainRanker scores candidates as the published code does: the states of a question are repeated for each candidate,
// and whole texts are read, padded to the longest.
type plainRanker struct {
	machine        *exec.Machine
	of             []float32
	seen           []int32
	terms          *gorgonia.Node
	count, n, t, d int
}

// newPlainRanker compiles it for questions of t states.
func newPlainRanker(t testing.TB, p *Trainer, candidates [][]int32) *plainRanker {
	t.Helper()
	b, d := newNet(p.params), newHost(p.cfg, p.o).Decoder()
	x := &plainRanker{count: len(candidates), t: p.text.Len(), d: p.text.Width()}
	for _, c := range candidates {
		x.n = max(x.n, len(c))
	}
	x.of, x.seen = make([]float32, x.count*x.t*x.d), make([]int32, x.count)
	ids, next, lengths := make([]int32, x.count*x.n), make([]int32, x.count*x.n), make([]int32, x.count)
	for i := range next {
		next[i] = -1
	}
	for i, c := range candidates {
		copy(ids[i*x.n:], c)
		copy(next[i*x.n:], c[1:])
		lengths[i] = int32(len(c))
	}
	logits := d.Logits(&encoders.Context{}, b.root().In("decoder"), encoders.DecoderArgs{
		IDs: b.inputs.FixedInts("tokens", ids), Lengths: b.inputs.FixedInts("lengths", lengths), Len: x.n,
		States: b.inputs.SharedFloats("states", x.of, x.count*x.t, x.d), StateLengths: b.inputs.SharedInts("seen", x.seen, x.count), StateLen: x.t,
	})
	x.terms = contrast.CrossEntropyRows(contrast.CrossEntropyArgs{Logits: logits, Labels: b.inputs.FixedInts("next", next)})
	x.machine = check.Get(b.compile(exec.Config{Engine: p.engine}, gorgonia.Nodes{x.terms}))(t)
	return x
}

// rank scores the candidates for one question.
func (x *plainRanker) rank(t testing.TB, states []float32, seen int32, scores []float32) {
	t.Helper()
	for i := range x.count {
		copy(x.of[i*x.t*x.d:], states)
		x.seen[i] = seen
	}
	check.OK(t, x.machine.RunAll())
	v := check.Get(x.machine.Value(x.terms))(t)
	for i := range scores {
		sum := float32(0)
		for _, term := range v.F32[i*x.n:][:x.n] {
			sum -= term
		}
		scores[i] = sum
	}
}

// questionStates returns the states of the questions of a batch, (n*L, D), each with its own image.
func questionStates(t testing.TB, p *Trainer, b *batch.Batch) []float32 {
	t.Helper()
	n := newNet(p.params)
	texts := p.text.encode(n, b.Rows(), encoders.Tap{}, encoders.Want{Tokens: true})
	images, _ := check.Get2(p.image.Encode(t.Context(), b))(t)
	states := p.fuse(n, encoders.Tap{}, encoders.FusionArgs{
		Texts: texts.Tokens, Lengths: texts.Lengths, Images: n.inputs.SharedFloats("images", images, b.Rows()*p.image.Len(), p.image.Width()),
		TextLen: p.text.Len(), ImageLen: p.image.Len(),
	})
	m := check.Get(n.compile(exec.Config{Engine: p.engine}, gorgonia.Nodes{states}))(t)
	check.OK(t, n.inputs.Fill(m, &feed.Step{Batch: b}))
	check.OK(t, m.RunAll())
	v := check.Get(m.Value(states))(t)
	return slices.Clone(v.F32)
}

// randomCandidates returns texts of one to most words, of which some share prefixes, among vocab tokens.
func randomCandidates(r *rand.Rand, n, most, vocab int) (list [][]int32) {
	for range n {
		c := []int32{2}
		for k := 1 + r.IntN(most); k > 0; k-- {
			c = append(c, int32(5+r.IntN(vocab-5)))
		}
		list = append(list, append(c, 3))
	}
	return list
}

// questions returns a batch of n random questions, every second of which is about the image of the one before it.
func questions(p *Trainer, r *rand.Rand, n int) *batch.Batch {
	b := batch.New(n, p.Writer().Columns()...)
	for i := range n {
		row := b.Row(i)
		pixels := row.Floats(batch.Images)
		if i%2 == 1 {
			copy(pixels, b.Row(i-1).Floats(batch.Images))
		} else {
			for k := range pixels {
				pixels[k] = float32(r.NormFloat64())
			}
		}
		tokens := row.Ints(batch.Tokens)
		length := 2 + r.IntN(len(tokens)-1)
		for k := range length {
			tokens[k] = int32(5 + r.IntN(p.o.Vocab-5))
		}
		row.Set(batch.Lengths, int32(length))
	}
	return b
}

// TestRankSharesPrefixes: many candidates in a batch that needs several groups of rows have the scores of the plain
// loop.
func TestRankSharesPrefixes(t *testing.T) {
	m, _, _ := loadDecoder(t, "vqa")
	r := rand.New(rand.NewPCG(3, 4))
	candidates := randomCandidates(r, 500, 4, tinyVocab)
	candidates = append(candidates, candidates[0]) // the same again
	b := questions(m, r, 6)
	ranker := check.Get(m.Writer().Ranker(candidates, 0))(t)
	if n := ranker.tree.inner(); n < 200 || 6*n < keptPrefixes {
		t.Fatalf("%d prefixes that others go on from need one group of rows", n)
	}
	got := check.Get(ranker.Rank(t.Context(), b))(t)
	plain, states := newPlainRanker(t, m, candidates), questionStates(t, m, b)
	want := make([]float32, len(candidates))
	for i := range b.Rows() {
		size := m.text.Len() * m.text.Width()
		plain.rank(t, states[i*size:][:size], b.Ints(batch.Lengths)[i], want)
		near(t, fmt.Sprintf("question %d: scores", i), got[i*len(want):][:len(want)], want, 1e-5)
	}

	// The candidates with the likeliest first words alone.
	const top = 40
	some := check.Get(m.Writer().Ranker(candidates, top))(t)
	all := slices.Clone(got)
	got = check.Get(some.Rank(t.Context(), b))(t)
	first := newPlainRanker(t, m, firstWords(candidates))
	for i := range b.Rows() {
		size := m.text.Len() * m.text.Width()
		first.rank(t, states[i*size:][:size], b.Ints(batch.Lengths)[i], want)
		kept := 0
		worst, best := math.Inf(1), math.Inf(-1)
		for k, s := range got[i*len(want):][:len(want)] {
			if p := float64(want[k]); math.IsInf(float64(s), -1) {
				best = max(best, p)
			} else {
				kept++
				worst = min(worst, p)
				if x := all[i*len(want)+k]; !(math.Abs(float64(x-s)) <= 1e-5*math.Abs(float64(x))) {
					t.Errorf("question %d: candidate %d has the score %v, among all %v", i, k, s, x)
				}
			}
		}
		if kept != top || best > worst+1e-5 {
			t.Errorf("question %d: %d candidates are ranked, the least first word at %v, one left out at %v", i, kept, worst, best)
		}
	}
}

// firstWords are candidates cut behind their first word.
func firstWords(candidates [][]int32) (list [][]int32) {
	for _, c := range candidates {
		list = append(list, c[:2])
	}
	return list
}

// TestRankTies: of candidates with one first word those that come first are ranked.
func TestRankTies(t *testing.T) {
	m, b, _ := loadDecoder(t, "vqa")
	r := check.Get(m.Writer().Ranker([][]int32{{2, 7, 8, 3}, {2, 7, 9, 3}, {2, 7, 3}}, 2))(t)
	got := check.Get(r.Rank(t.Context(), b))(t)
	if math.IsInf(float64(got[0]), 0) || math.IsInf(float64(got[1]), 0) || !math.IsInf(float64(got[2]), -1) {
		t.Errorf("scores %v", got[:3])
	}
}

// TestRankRefuses: candidates that cannot be ranked say why.
func TestRankRefuses(t *testing.T) {
	m, b, _ := loadDecoder(t, "vqa")
	for want, list := range map[string][][]int32{
		"there are no candidates":                                 nil,
		"candidate 1 has 1 tokens: want at least 2":               {{2, 3}, {2}},
		"candidate 1 begins with the token 5, candidate 0 with 2": {{2, 3}, {5, 3}},
		"candidate 0 has the token 40: want [0, 40)":              {{2, 40, 3}},
		"candidate 0 has 12 tokens: want at most 11":              {make([]int32, 12)},
	} {
		check.Fails(m.Writer().Ranker(list, 0))(t, want)
	}
	r := check.Get(m.Writer().Ranker([][]int32{{2, 3}}, 0))(t)
	if _, err := r.Rank(t.Context(), batch.New(0, m.Writer().Columns()...)); err == nil {
		t.Error("a batch without rows is ranked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Rank(ctx, b); err == nil {
		t.Error("a cancelled ranking goes on")
	}
	pretrained := modelOn(t, tinyConfig(), newEngine(t))
	if pretrained.Writer() != nil {
		t.Error("a model without a decoder writes")
	}
}

// BenchmarkRank ranks 100 candidates for questions about images of their own, with shared prefixes and by the plain
// loop.
func BenchmarkRank(b *testing.B) {
	cfg := tinyDecoder("vqa")
	cfg.Model.Image = encoders.ImageOptions{Size: 64, Patch: 16, Depth: 4, Width: 192, Heads: 6}
	cfg.Model.Text = encoders.TextOptions{Layers: 2, FusionLayers: 4, Width: 192, Heads: 6, Positions: 32}
	cfg.Data.Tokens, cfg.Objective.VQA.Tokens = 16, 8
	const vocab, n = 5000, 20
	m := newTrainer(b, cfg, Options{Engine: newEngine(b), Vocab: vocab, MaskID: 4, BeginID: 2, EndID: 3})
	r := rand.New(rand.NewPCG(1, 2))
	candidates := slices.Concat(randomCandidates(r, 80, 1, 100), randomCandidates(r, 15, 3, 100), randomCandidates(r, 5, 6, 100))
	x := questions(m, r, n)
	b.Run("shared", func(b *testing.B) {
		ranker := check.Get(m.Writer().Ranker(candidates, 0))(b)
		for b.Loop() {
			check.Get(ranker.Rank(b.Context(), x))(b)
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "questions/s")
	})
	b.Run("plain", func(b *testing.B) {
		plain, scores := newPlainRanker(b, m, candidates), make([]float32, len(candidates))
		size := m.text.Len() * m.text.Width()
		for b.Loop() {
			states := questionStates(b, m, x)
			for i := range n {
				plain.rank(b, states[i*size:][:size], x.Ints(batch.Lengths)[i], scores)
			}
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "questions/s")
	})
}
