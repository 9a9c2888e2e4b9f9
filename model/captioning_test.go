package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/tasks/captioning"
)

// captioned makes a step and returns the part of the captioning loss.
func captioned(t *testing.T, m *Trainer, b *batch.Batch, counter int) float64 {
	t.Helper()
	res := stepOf(t, m, &feed.Step{Batch: b, Counter: counter})
	i := slices.IndexFunc(res.Parts, func(p Part) bool { return p.Name == "captioning" })
	if i < 0 {
		t.Fatalf("there is no captioning loss in %v", res.Parts)
	}
	return res.Parts[i].Value
}

// TestCaptioningWords: with a decoder whose output layer knows nothing but how often words come, the loss is the sum
// over the tokens of a caption behind the first, as many as objective.captioning.tokens leaves, and the mean over the
// batch.
func TestCaptioningWords(t *testing.T) {
	for _, tokens := range []int{0, 3, 100} {
		cfg := tinyHost("vsepp_caption")
		cfg.Objective.Captioning.Tokens = tokens
		m := buildCLIP(t, cfg)
		bias := make([]float64, m.Vocab())
		for _, name := range []string{"captioning/out/weight", "captioning/out/bias"} {
			q, _ := m.params.Get(name)
			v := m.params.Value(q)
			clear(v)
			for i := range bias {
				if name == "captioning/out/bias" {
					bias[i] = float64(i%7) / 4
					v[i] = float32(bias[i])
				}
			}
		}
		sum := 0.0
		for _, b := range bias {
			sum += math.Exp(b)
		}
		b := normBatches(m, 1)[0]
		copy(b.Ints(batch.Lengths), []int32{0, 1, 2, 4, 6})
		want, most := 0.0, 6
		if tokens > 0 {
			most = min(most, tokens)
		}
		for i, n := range b.Ints(batch.Lengths) {
			for k := 1; k < min(int(n), most); k++ {
				want += math.Log(sum) - bias[b.Row(i).Ints(batch.Tokens)[k]]
			}
		}
		if got := captioned(t, m, b, 0); !(math.Abs(got-want/5) <= 1e-5*want) {
			t.Errorf("%d tokens: the loss is %v, want %v", tokens, got, want/5)
		}
	}
}

// TestCaptioningReadsTheImage: a word changes no prediction before it, images do, and regions behind the last do not;
// patches of a vision transformer do as well as regions.
func TestCaptioningReadsTheImage(t *testing.T) {
	cfg := tinyHost("vsepp_caption")
	m := buildCLIP(t, cfg)
	b := normBatches(m, 1)[0]
	plain := captioned(t, m, b, 0)
	change := func(f func(row *batch.Row)) float64 {
		x := batch.New(b.Rows(), b.Columns()...)
		for i := range b.Rows() {
			x.Row(i).Copy(b.Row(i))
		}
		row := x.Row(0) // one region and two tokens
		f(&row)
		return captioned(t, m, x, 0)
	}
	if got := change(func(r *batch.Row) { r.Floats(batch.Regions)[0]++ }); got == plain {
		t.Error("the image does not matter")
	}
	if got := change(func(r *batch.Row) { r.Floats(batch.Regions)[6]++ }); got != plain {
		t.Error("a region behind the last matters")
	}
	if got := change(func(r *batch.Row) { r.Ints(batch.Tokens)[2]++ }); got != plain {
		t.Error("a word behind the last matters")
	}
	if got := change(func(r *batch.Row) { r.Ints(batch.Tokens)[0]++ }); got == plain {
		t.Error("the word before does not matter")
	}

	cfg = tinyCLIP("sphere")
	cfg.Objective.Captioning = captioning.Loss{Weighted: section.Weigh(1), Width: 6, Embedding: 5}
	p := buildCLIP(t, cfg)
	x := randomPairs(p, 1)
	loss := func() float64 {
		res := step(t, p, x, Control{})
		return res.Parts[len(res.Parts)-1].Value
	}
	before := loss()
	for i := range 3 * 16 * 16 {
		x.Images[i]++
	}
	if after := loss(); before == after || !(before > 0) {
		t.Errorf("over patches the loss is %v, and %v of other images", before, after)
	}
}

// TestCaptioningDropout: dropout changes from step to step, and is off in none of them.
func TestCaptioningDropout(t *testing.T) {
	cfg := tinyHost("vsepp_caption")
	cfg.Objective.Captioning.Dropout = .5
	m := buildCLIP(t, cfg)
	b := normBatches(m, 1)[0]
	if one, two, again := captioned(t, m, b, 0), captioned(t, m, b, 1), captioned(t, m, b, 0); one == two || one != again {
		t.Errorf("losses %v, %v and %v", one, two, again)
	}
}
