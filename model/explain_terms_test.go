package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// randomPair is a pair of regions or pixels with a text of so many tokens.
func randomPair(m *Trainer, regions, tokens int) *batch.Batch {
	b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
	r := rand.New(rand.NewPCG(uint64(regions), uint64(tokens)))
	for _, name := range []string{batch.Images, batch.Regions} {
		for i := range b.Floats(name) {
			b.Floats(name)[i] = float32(r.NormFloat64())
		}
	}
	for i := range b.Ints(batch.Tokens) {
		b.Ints(batch.Tokens)[i] = int32(2 + r.IntN(tinyVocab-2))
	}
	b.Ints(batch.Lengths)[0] = int32(tokens)
	if n := b.Ints(batch.RegionLengths); n != nil {
		n[0] = int32(regions)
	}
	return b
}

// stir moves all parameters from where they start, so that metrics are not the identity.
func stir(m *Trainer) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, q := range m.params.List() {
		for i := range m.params.Value(q) {
			m.params.Value(q)[i] += float32(0.1 * r.NormFloat64())
		}
	}
}

// interacted is the score of a pair as evaluation computes it.
func interacted(t *testing.T, m *Trainer, b *batch.Batch) float64 {
	t.Helper()
	encode := func(e *Encoder) ([]float32, []int32) {
		x := batch.New(1, e.Columns()...)
		x.Row(0).Copy(b.Row(0))
		tokens, lengths := check.Get2(e.EncodeTokens(t.Context(), x))(t)
		return slices.Clone(tokens), slices.Clone(lengths)
	}
	x, nx := encode(m.Image())
	y, ny := encode(m.Text())
	s := check.Get(m.Interaction().Scores(t.Context(), x, nx, y, ny))(t)
	return float64(s[0])
}

// TestExplainTerms: of every kind, direction, pool, form and site of the metric, over pixels and over
// regions, the terms add up to the score of evaluation.
func TestExplainTerms(t *testing.T) {
	var list []interact.Options
	for _, way := range []string{"both", "image_to_text", "text_to_image"} {
		for _, kind := range []string{"max_ave", "max_sum", "max_soft"} {
			list = append(list, interact.Options{Kind: kind, Direction: way, Metric: "similarity", ClassTokens: way == "both"})
		}
		for _, kind := range []string{"scan", "bfan"} {
			for i, site := range []string{"similarity", "attention", "both"} {
				list = append(list, interact.Options{Kind: kind, Direction: way, Metric: site, Pool: []string{"", "mean", "lse"}[i], ClassTokens: site == "both"})
			}
		}
	}
	for i, how := range list {
		cfg := tinyFILIP(how.Kind)
		if i%2 == 1 {
			cfg = tinyHost("vsepp")
			cfg.Model.Image.Size = 16 // of the pictures, which no tower reads
		}
		cfg.Model.Interaction = how
		if form := []string{"", "diag", "block_diag", "dense"}[i%4]; form != "" {
			cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", objectives.GSSF{Form: form, Blocks: 2}
		}
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) { termsAddUp(t, cfg) })
	}
}

// TestExplainTermsOfForms: so they do under the forms of a metric that are stored otherwise than they are made up, at
// both sites.
func TestExplainTermsOfForms(t *testing.T) {
	for name, form := range map[string]objectives.GSSF{
		"sparse": {Form: "sparse", L1: 0.1}, "low_rank": {Form: "low_rank", Rank: 3}, "symmetric": {Form: "low_rank", Rank: 3, Symmetric: true},
	} {
		for _, kind := range []string{"max_ave", "bfan"} {
			cfg := tinyFILIP(kind)
			cfg.Model.Interaction.Metric = "similarity"
			if kind == "bfan" {
				cfg.Model.Interaction.Metric = "both"
			}
			cfg.Objective.ITC.Score, cfg.Objective.GSSF = "gssf", form
			t.Run(kind+" "+name, func(t *testing.T) { termsAddUp(t, cfg) })
		}
	}
}

// termsAddUp checks that of pairs of several sizes.
func termsAddUp(t *testing.T, cfg config.Config) {
	t.Helper()
	m := buildInteraction(t, cfg)
	stir(m)
	for _, size := range [][2]int{{3, 5}, {1, 2}, {4, 6}} {
		b := randomPair(m, size[0], size[1])
		e := check.Get(m.Explainer().Pair(t.Context(), b, m.Explainer().DefaultBlocks()))(t)
		sum, image, text := 0.0, 0.0, 0.0
		for _, x := range e.Compared.Terms {
			sum, image, text = sum+x.Score(), image+x.Rest, text+x.Rest
			for _, v := range x.ByImage() {
				image += v
			}
			for _, v := range x.ByText() {
				text += v
			}
		}
		want := interacted(t, m, b)
		for what, got := range map[string]float64{"the score": e.Score, "all terms": sum, "what the image's tokens add": image, "what the text's add": text} {
			if !(math.Abs(got-want) <= 1e-5*max(1, math.Abs(want))) {
				t.Errorf("%d regions, %d tokens: %s is %.7f, evaluation has %.7f", size[0], size[1], what, got, want)
			}
		}
	}
}

// silent is an interaction that does not say what its score is made of.
type silent struct{ interact.MaxSim }

// TestExplainOtherInteractions: a kind without terms is explained by gradients to the tokens that it
// compares. Of sums of maxima, which are linear in a token, gradient times token is what the terms of the
// token are.
func TestExplainOtherInteractions(t *testing.T) {
	m := buildInteraction(t, tinyFILIP("max_ave"))
	b := randomPair(m, 0, 5)
	e, err := m.Explainer().Pair(t.Context(), b, m.Explainer().DefaultBlocks())
	if err != nil {
		t.Fatal(err)
	}
	image, text := make([]float64, e.Compared.Image.N), make([]float64, e.Compared.Text.N)
	for _, x := range e.Compared.Terms {
		for i, v := range x.ByImage() {
			image[i] += v
		}
		for i, v := range x.ByText() {
			text[i] += v
		}
	}
	m.explainer.pairs.kept, m.design.interaction = nil, silent{m.design.interaction.(interact.MaxSim)}
	if e, err = m.Explainer().Pair(t.Context(), b, m.Explainer().DefaultBlocks()); err != nil || e.Compared.Terms != nil {
		t.Fatalf("terms of a kind that has none, or %v", err)
	}
	if e.Image.N != len(image) || e.Compared.Image.First != 0 || e.Compared.Text.First != 1 {
		t.Fatalf("%d patches, first tokens %d and %d", e.Image.N, e.Compared.Image.First, e.Compared.Text.First)
	}
	for side, x := range map[*States][]float64{e.Image: image, e.Text: append([]float64{0}, text...)} {
		for i, v := range explain.Elementwise(side.Values, side.Grads, side.N, side.D) {
			want := 0.0
			if i < len(x) {
				want = x[i]
			}
			if !(math.Abs(v-want) <= 1e-5) {
				t.Errorf("token %d of %d is worth %v, its terms %v", i, side.N, v, want)
			}
		}
	}
}

// TestExplainHosts: hosts of one vector have the score of evaluation, and gradients to regions and words
// that are those of finite differences: of a bias that all regions share, and of the embedding of a word.
func TestExplainHosts(t *testing.T) {
	for _, name := range hosts {
		m := buildCLIP(t, tinyHost(name))
		host, _, _ := strings.Cut(name, "_")
		stir(m)
		b := randomPair(m, 3, 5)
		copy(b.Ints(batch.Tokens), []int32{2, 3, 4, 5, 6}) // each once
		at := m.Explainer().DefaultBlocks()
		if want := map[string]Blocks{"vsepp": {}, "vseinf": {Text: 1}, "esa": {Text: 1}, "vsrn": {Image: 2}}[host]; at.Image != want.Image || at.Text != want.Text {
			t.Errorf("%s: default blocks %v", name, at)
		}
		explained := func(at Blocks) *Explained {
			return check.Get(m.Explainer().Pair(t.Context(), b, at))(t)
		}
		image, text := hostFeatures(t, m, b)
		want := 0.0
		for c := range image {
			want += float64(image[c]) * float64(text[c])
		}
		e := explained(at)
		if !(math.Abs(e.Score-want) <= 1e-5) || e.Image.N != 4 || e.Compared != nil {
			t.Errorf("%s: score %v, want %v, %d regions", name, e.Score, want, e.Image.N)
		}
		for side, s := range map[string]*States{"image": e.Image, "text": e.Text} {
			worth := explain.Channels(s.Values, s.Grads, s.N, s.D)
			n := map[string]int{"image": 3, "text": 5}[side]
			for i, v := range worth {
				if !(v > 0) && i < n || v != 0 && i >= n {
					t.Errorf("%s: %s token %d of %d is worth %v", name, side, i, n, v)
				}
			}
		}
		for k := range 3 {
			score := func() float64 { return explained(Blocks{Image: at.Image}).Score }
			e := explained(Blocks{Image: at.Image})
			region, word := 0.0, float64(e.Text.Grads[2*e.Text.D+k])
			for i := range e.Image.N {
				region += float64(e.Image.Grads[i*e.Image.D+k])
			}
			checks := map[string]float64{"text/embeddings/word/weight": word}
			if host != "vsrn" { // whose pool reads regions behind a norm
				checks["image/fc/bias"] = region
			}
			for param, sum := range checks {
				at := k
				if param != "image/fc/bias" {
					at += int(b.Ints(batch.Tokens)[2]) * e.Text.D
				}
				if got := nudged(t, m, param, at, score); !(math.Abs(got-sum) <= 2e-3*max(0.2, math.Abs(sum))) {
					t.Errorf("%s: gradient %.5f, by differences %.5f to %s[%d]", name, sum, got, param, at)
				}
			}
		}
	}
}

// TestExplainAdapters: a model with adapters is explained with them.
func TestExplainAdapters(t *testing.T) {
	for name, cfg := range loraSystems(t) {
		if cfg.Has(section.ImagesAlone) {
			continue
		}
		m := buildCLIP(t, cfg)
		b := randomPair(m, 0, 5)
		score := func() (out []float64) {
			e := check.Get(m.Explainer().Pair(t.Context(), b, m.Explainer().DefaultBlocks()))(t)
			out = append(out, e.Score)
			if m.Matcher() != nil {
				e = check.Get(m.Explainer().Match(t.Context(), b, m.Explainer().DefaultBlocks()))(t)
				out = append(out, e.Score)
			}
			return out
		}
		before := score()
		scatter(m, 0.1)
		after := score()
		image, text := hostFeatures(t, m, b)
		want := 0.0
		for c := range image {
			want += float64(image[c]) * float64(text[c])
		}
		if s := m.design.space; s.Groups() == 1 && !(math.Abs(after[0]-want) <= 1e-5) {
			t.Errorf("%s: score %v, of the features %v", name, after[0], want)
		}
		for i := range before {
			if before[i] == after[i] {
				t.Errorf("%s: score %d is that without adapters", name, i)
			}
		}
	}
}
