package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// opened returns the model of m's parameters for inference.
func opened(t testing.TB, m *Trainer) (*Model, *memorySource) {
	t.Helper()
	from := &memorySource{p: m.params}
	x := check.Get(Open(m.cfg, Options{Engine: m.engine, Vocab: m.Vocab()}, from))(t)
	return x, from
}

// TestOpenReadsWhatIsAskedFor: features of images need no parameter of the text side, those
// of texts none of the image side or of the fusion layers, and each is read once. There are
// no gradients and no momentum encoder.
func TestOpenReadsWhatIsAskedFor(t *testing.T) {
	m := build(t, tinyConfig(), "", 2)
	b := randomBatch(m, 1)
	x, from := opened(t, m)
	if len(from.read) > 0 {
		t.Errorf("read %v before anything is asked for", from.read)
	}
	only := func(prefixes ...string) {
		t.Helper()
		for i, name := range from.read {
			if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				t.Errorf("%s was read", name)
			}
			if slices.Contains(from.read[:i], name) {
				t.Errorf("%s was read twice", name)
			}
		}
	}
	check.Get2(x.EncodeImages(b.Images, 4))(t)
	only("image/", "image_proj/")
	images := len(from.read)
	check.Get2(x.EncodeTexts(b.Tokens, b.Lengths, 4))(t)
	only("image/", "image_proj/", "text/embeddings/", "text/layers/00/", "text/layers/01/", "text_proj/")
	if _, _, err := x.EncodeImages(b.Images[:len(b.Images)/4], 1); err != nil { // another computation
		t.Fatal(err)
	}
	only("image/", "image_proj/", "text/embeddings/", "text/layers/00/", "text/layers/01/", "text_proj/")
	before := len(from.read)
	if _, err := x.Matcher().Match(t.Context(), make([]float32, 6*24), []int32{2}, []int32{0}, make([]float32, 5*16), 1, 1); err != nil {
		t.Fatal(err)
	}
	if images == 0 || !slices.Contains(from.read[before:], "itm_head/weight") || !slices.Contains(from.read[before:], "text/layers/02/crossattention/kv/weight") {
		t.Errorf("matching read %v", from.read[before:])
	}
	for _, name := range from.read {
		if name == temperatureName || strings.HasPrefix(name, "text/mlm") {
			t.Errorf("%s was read", name)
		}
	}
	if got, err := x.Temperature(); err != nil || got != m.Temperature() || got == 0 {
		t.Errorf("temperature %v (%v), want %v", got, err, m.Temperature())
	}
	p := x.Params()
	if len(p.Grads()) > 0 || len(p.momentum) > 0 || len(p.Values()) > 0 {
		t.Errorf("%d gradients and %d twins in a model for inference", len(p.Grads()), len(p.momentum))
	}
}

// TestOpenHasTheBitsOfTheModel that wrote the parameters, for every system.
func TestOpenHasTheBitsOfTheModel(t *testing.T) {
	multi := tinyCLIP("Multi(2,4)")
	multi.Model.Head.TokenBlocks = 1
	for name, cfg := range map[string]config.Config{
		"albef": tinyConfig(), "every idea": everyIdea(), "clip": multi, "heads": tinyHeads(), "moco": tinyViews(t, "moco"), "swav": tinyViews(t, "swav"),
		"simcse": tinySimCSE(t, "objective.simcse.head=always", "model.text.pool=first_last"), "pairs": tinyPairs(t, "snli"),
	} {
		m := build(t, cfg, "builtin", 2)
		if queue := m.Queue(); queue != nil {
			fillQueue(queue)
		}
		b := randomBatch(m, 1)
		b.Views = slices.Clone(b.Images)
		step(t, m, b, Control{})
		x, _ := opened(t, m)
		batch := m.feed(b, Control{}).Batch
		sides := []func(*Model) *Encoder{(*Model).Image, (*Model).Text}
		if m.design.views {
			sides = sides[:1]
		}
		for i, side := range sides {
			states, features := check.Get2(side(m.Model).Encode(t.Context(), batch))(t)
			s, f, err := side(x).Encode(t.Context(), batch)
			if err != nil || !sameBits(s, states) || !sameBits(f, features) || len(f) == 0 {
				t.Errorf("%s, side %d: other states or features (%v)", name, i, err)
			}
			if side(x).Len() != side(m.Model).Len() || side(x).Width() != side(m.Model).Width() {
				t.Errorf("%s, side %d: other sizes", name, i)
			}
		}
		want := check.Get(m.PairScore())(t)
		got := check.Get(x.PairScore())(t)
		for i, w := range want.Terms {
			if g := got.Terms[i]; g.Kind != w.Kind || (g.Metric == nil) != (w.Metric == nil) || w.Metric != nil && !sameBits(g.Metric.Weight, w.Metric.Weight) {
				t.Errorf("%s: score %+v, want %+v", name, g, w)
			}
		}
	}
}

// TestOpenMatches: the match head of an opened model has the bits of the model's.
func TestOpenMatches(t *testing.T) {
	m := build(t, tinyConfig(), "builtin", 2)
	b := randomBatch(m, 1)
	x, _ := opened(t, m)
	if x.Matcher() == nil {
		t.Fatal("no match head")
	}
	match := func(m *Model) []float32 {
		images, _ := encodeImages(t, m, b.Images, 4)
		texts, _ := encodeTexts(t, m, b.Tokens, b.Lengths, 4)
		s := check.Get(m.Matcher().Match(t.Context(), texts, b.Lengths, []int32{3, 1, 0, 1}, images, 4, 4))(t)
		return clone(s)
	}
	if !sameBits(match(x), match(m.Model)) {
		t.Error("other scores of pairs")
	}
	cfg := tinyConfig()
	cfg.Objective.ITM.Weight = 0
	without, _ := opened(t, build(t, cfg, "builtin", 1))
	if without.Matcher() != nil {
		t.Error("a model without matching has a match head")
	}
}

// TestOpenWithoutAParameter: what is missing is named when it is asked for, and what does
// not need it works.
func TestOpenWithoutAParameter(t *testing.T) {
	m := build(t, tinyConfig(), "", 1)
	b := randomBatch(m, 1)
	x, _ := opened(t, m)
	delete(m.params.byName, "text/layers/01/ffn/output/weight")
	for range 2 { // and it is missing when it is asked for again
		if _, _, err := x.EncodeTexts(b.Tokens, b.Lengths, 4); err == nil || !strings.Contains(err.Error(), "text/layers/01/ffn/output/weight") {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := x.EncodeImages(b.Images, 4); err != nil {
		t.Errorf("images: %v", err)
	}
	// A metric that a checkpoint lacks is the cosine: it was trained without.
	cfg := tinyConfig()
	cfg.Eval.Score = "gssf"
	plain := check.Get(Open(cfg, Options{Engine: m.engine, Vocab: tinyVocab}, &memorySource{p: m.params}))(t)
	s, err := plain.PairScore()
	if err != nil || len(s.Terms) != 1 || s.Terms[0].Metric == nil || s.Terms[0].Metric.Form != "cosine" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, ok := plain.params.Get(encoders.MetricName(encoders.SimilaritySite)); ok {
		t.Error("a metric that is not stored is a parameter")
	}
}

// TestEncodeClasses: class tokens are all of a row one after the other, the first as among the
// states; the head makes the features of them, group k of token k.
func TestEncodeClasses(t *testing.T) {
	cfg := tinyConfig()
	cfg.Model.Head.Topology, cfg.Model.Text.Positions = "Multi(2,4)", 20
	m := build(t, cfg, "builtin", 2)
	b := m.feed(randomBatch(m, 4), Control{}).Batch
	const classes, group = 4, 2
	for _, side := range []struct {
		e    *Encoder
		head string
	}{{m.Image(), "image_proj"}, {m.Text(), "text_proj"}} {
		states, features := check.Get2(side.e.Encode(t.Context(), b))(t)
		got := check.Get(side.e.EncodeClasses(t.Context(), b))(t)
		n, d := b.Rows(), side.e.Width()
		if len(got) != n*classes*d {
			t.Fatalf("%s: %d values, want %d", side.head, len(got), n*classes*d)
		}
		weight, _ := m.params.Get(side.head + "/weight") // (group, d)
		bias, _ := m.params.Get(side.head + "/bias")
		for i := range n {
			closeTo(t, "first class token", got[i*classes*d:][:d], states[i*side.e.Len()*d:][:d], 1e-5)
			for k := range classes {
				x := got[(i*classes+k)*d:][:d]
				y := make([]float32, group)
				for c := range y {
					y[c] = m.params.Value(bias)[c]
					for j, v := range x {
						y[c] += v * m.params.Value(weight)[c*d+j]
					}
				}
				scoring.Normalize(y)
				closeTo(t, "features of a class token", y, features[(i*classes+k)*group:][:group], 1e-5)
			}
		}
	}
}
