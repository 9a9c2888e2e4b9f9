package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// clone copies a slice that the next call would overwrite.
func clone(x []float32) []float32 { return append([]float32(nil), x...) }

// closeTo fails unless the values agree to tol.
func closeTo(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= tol) {
			t.Fatalf("%s[%d] is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestInferenceEqualsTraining: with twins that are copies and without dropout, the
// teacher's features of a training step are those of the inference graphs, for any
// batch size of the latter.
func TestInferenceEqualsTraining(t *testing.T) {
	cfg := tinyConfig()
	cfg.Model.Text.Dropout = 0.1 // inference has none
	cfg.Momentum.Dropout = false
	m := build(t, cfg, "auto", 2)
	x := randomBatch(m, 3)
	forward(t, m, x, Control{Alpha: 0.4, UseQueue: true})
	k := check.Get(m.Features())(t)
	imageM, textM := k.Image, k.Text
	b, l, c := cfg.Train.BatchSize, cfg.Data.Tokens, m.Dim()
	size := len(x.Images) / b
	for _, n := range []int{1, 2, b} {
		for i := 0; i < b; i += n {
			states, f := encodeImages(t, m, x.Images[i*size:][:n*size], n)
			if want := n * m.Image().Len() * m.Image().Width(); len(states) != want {
				t.Fatalf("%d values of image states, want %d", len(states), want)
			}
			closeTo(t, "image features", f, imageM[i*c:][:n*c], 1e-6)
			states, f = encodeTexts(t, m, x.Tokens[i*l:][:n*l], x.Lengths[i:][:n], n)
			if want := n * m.Text().Len() * m.Text().Width(); len(states) != want {
				t.Fatalf("%d values of text states, want %d", len(states), want)
			}
			closeTo(t, "text features", f, textM[i*c:][:n*c], 1e-6)
		}
	}
}

// matchLoss is the matching loss of a batch of two pairs, whose only negatives are
// each other, from the logits s of class match, when those of the other class are 0:
// the mean of log(1+exp(-s)) over the pairs and of log(1+exp(s)) over the 4 others.
func matchLoss(pairs, others []float32) float64 {
	var sum float64
	for _, s := range pairs {
		sum += math.Log1p(math.Exp(-float64(s)))
	}
	for _, s := range others {
		sum += math.Log1p(math.Exp(float64(s)))
	}
	return sum / float64(len(pairs)+len(others))
}

// matchOf returns the logits of match among those of pairs.
func matchOf(logits []float32) (m []float32) {
	for i := 1; i < len(logits); i += 2 {
		m = append(m, logits[i])
	}
	return m
}

// TestMatchEqualsTraining computes the matching loss of a training step of two pairs
// from the scores of Match.
func TestMatchEqualsTraining(t *testing.T) {
	cfg := tinyConfig()
	cfg.Train.BatchSize = 2
	m := build(t, cfg, "auto", 2)
	w, _ := m.params.Get("itm_head/weight")
	bias, _ := m.params.Get("itm_head/bias")
	clear(m.params.Value(w)[:m.Text().Width()]) // class 0
	m.params.Value(bias)[0] = 0
	for i := range m.Text().Width() { // far from the small values of the start
		m.params.Value(w)[m.Text().Width()+i] = float32(math.Sin(float64(i)))
	}
	x := randomBatch(m, 5)
	res := forward(t, m, x, Control{})
	var itm float64
	for _, p := range res.Parts {
		if p.Name == "itm" {
			itm = p.Value
		}
	}
	is, _ := encodeImages(t, m, x.Images, 2)
	images := clone(is)
	ts, _ := encodeTexts(t, m, x.Tokens, x.Lengths, 2)
	states := clone(ts)
	r, err := m.Matcher().Match(t.Context(), states, x.Lengths, []int32{0, 1}, images, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	pairs := matchOf(r)
	r = check.Get(m.Matcher().Match(t.Context(), states, x.Lengths, []int32{1, 0}, images, 2, 2))(t)
	others := matchOf(r)
	if pairs[0] == others[0] {
		t.Fatal("all scores are equal")
	}
	// The wrong image of text 0 and the wrong text of image 1 are one pair.
	want := matchLoss(pairs, append(clone(others), others...))
	if !(math.Abs(itm-want) <= 1e-5*want) {
		t.Errorf("training loss %v, from the scores %v", itm, want)
	}
	// One text against both images, and both texts against one image.
	one := clone(states[:len(states)/2])
	both := append(clone(one), one...)
	if r, err = m.Matcher().Match(t.Context(), both, []int32{x.Lengths[0], x.Lengths[0]}, []int32{1, 0}, images, 2, 2); err != nil {
		t.Fatal(err)
	}
	closeTo(t, "one text, two images", matchOf(r), []float32{others[0], pairs[0]}, 1e-5)
	r = check.Get(m.Matcher().Match(t.Context(), states, x.Lengths, []int32{0, 0}, images[:len(images)/2], 2, 1))(t)
	closeTo(t, "two texts, one image", matchOf(r), []float32{pairs[0], others[1]}, 1e-5)
}

// TestInferenceFollowsParameters: a graph made before an update sees the update.
func TestInferenceFollowsParameters(t *testing.T) {
	m := build(t, tinyConfig(), "auto", 1)
	x := randomBatch(m, 1)
	_, f := encodeImages(t, m, x.Images, 4)
	before := clone(f)
	q, _ := m.params.Get("image_proj/bias")
	m.params.Value(q)[0] += 1
	_, f = encodeImages(t, m, x.Images, 4)
	if sameBits(before, f) {
		t.Error("features did not change with a parameter")
	}
}

// TestQueueSwitch: without UseQueue the step is that of a model without a queue, and
// rows that were never filled change nothing.
func TestQueueSwitch(t *testing.T) {
	cfg := tinyConfig()
	cfg.Objective.ITC.Positives = "id"
	with := build(t, cfg, "auto", 2)
	cfg.Queue.Size = 0
	without := build(t, cfg, "auto", 2)
	x := randomBatch(with, 1)
	run := func(m *Trainer, use bool) float64 {
		return forward(t, m, x, Control{Alpha: 0.4, UseQueue: use}).Loss
	}
	run(with, true)
	check.OK(t, with.Enqueue(x.IDs))
	q := with.Queue()
	if q.Filled != 4 || q.Size() != 8 {
		t.Fatalf("queue has %d of %d", q.Filled, q.Size())
	}
	a, b := run(with, false), run(without, true)
	if !(math.Abs(a-b) <= 1e-6*b) {
		t.Errorf("with a queue that is not used the loss is %v, without one %v", a, b)
	}
	closeTo(t, "gradients", with.params.Grads(), without.params.Grads(), 1e-6)

	used := run(with, true)
	if used == a {
		t.Error("the queue changed nothing")
	}
	grads := clone(with.params.Grads())
	for i := 4 * with.Dim(); i < len(q.Image); i++ {
		q.Image[i], q.Text[i] = float32(math.NaN()), 1e30
	}
	for i := 4; i < 8; i++ {
		q.IDs[i] = x.IDs[0]
	}
	if again := run(with, true); again != used || !sameBits(grads, with.params.Grads()) {
		t.Errorf("rows that were never filled change the loss from %v to %v", used, again)
	}
}

// TestBatchErrors: a batch of another shape is refused by name.
func TestBatchErrors(t *testing.T) {
	m := build(t, tinyConfig(), "auto", 1)
	for what, spoil := range map[string]func(b *Batch){
		"feed: images: got 3071 values, want 4 rows of 768": func(b *Batch) { b.Images = b.Images[1:] },
		"feed: tokens: got 23 values, want 4 rows of 6":     func(b *Batch) { b.Tokens = b.Tokens[1:] },
		"feed: lengths: got 0 values, want 4 rows of 1":     func(b *Batch) { b.Lengths = nil },
		"feed: ids: got 1 values, want 4 rows of 1":         func(b *Batch) { b.IDs = b.IDs[:1] },
	} {
		b := randomBatch(m, 1)
		spoil(&b)
		check.Fails(m.Step(t.Context(), m.feed(b, Control{})))(t, what)
	}
	if _, err := m.Forward(randomBatch(m, 1), Control{}); err != nil {
		t.Errorf("after the errors: %v", err)
	}
	if _, _, err := m.EncodeImages(nil, 2); err == nil {
		t.Error("no images for a batch of two were accepted")
	}
	if _, _, err := m.EncodeTexts([]int32{1}, []int32{1}, 2); err == nil {
		t.Error("one token for a batch of two was accepted")
	}
}

// TestModelErrors: what cannot be built says why.
func TestModelErrors(t *testing.T) {
	e := newEngine(t)
	for want, change := range map[string]func(c *config.Config){
		"every objective has weight 0": func(c *config.Config) { c.Objective = config.Objective{} },
		"multiple of the patch":        func(c *config.Config) { c.Model.Image.Patch = 5 },
		"heads":                        func(c *config.Config) { c.Model.Text.Heads = 5 },
		"negatives":                    func(c *config.Config) { c.Train.BatchSize = 1 },
		"itc: needs the teacher":       func(c *config.Config) { c.Momentum.Enabled, c.Queue.Size = false, 0 },
		"queue: needs the teacher": func(c *config.Config) {
			c.Momentum.Enabled, c.Objective.ITC.Weight = false, 0
		},
		"geometric: needs the teacher": func(c *config.Config) {
			c.Momentum.Enabled, c.Queue.Size, c.Objective.ITC.Weight, c.Objective.Geometric.Weight = false, 0, 0, 1
		},
		"geometric: needs the queue": func(c *config.Config) { c.Queue.Size, c.Objective.Geometric.Weight = 0, 1 },
		"geometric: needs the pool of image features": func(c *config.Config) {
			c.Model.System, c.Model.Heads, c.Objective.Geometric.Weight = "heads", encoders.FeatureHeads{InImage: 4, InText: 4, Layers: 1, Hidden: 8, Activation: "gelu"}, 1
			c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0
		},
		"itc_local: needs towers of several tokens": func(c *config.Config) {
			c.Model.System, c.Model.Heads, c.Objective.TCL.Local = "heads", encoders.FeatureHeads{InImage: 4, InText: 4, Layers: 1, Hidden: 8, Activation: "gelu"}, true
			c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0
		},
		"fusion: this system has no fusion layers": func(c *config.Config) { c.Model.System = "clip" },
	} {
		cfg := tinyConfig()
		change(&cfg)
		check.Fails(newModel(cfg, e))(t, want)
	}
	cfg := tinyConfig()
	cfg.Objective.ITM.Weight = 0
	m := modelOn(t, cfg, e)
	if m.Matcher() != nil {
		t.Error("a model without matching has a match head")
	}
}
