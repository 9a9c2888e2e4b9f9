package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/check"
)

// partOf returns a part of the loss of a step of a batch.
func partOf(t *testing.T, m *Trainer, b *batch.Batch, name string) float64 {
	t.Helper()
	res := stepOf(t, m, &feed.Step{Batch: b})
	i := slices.IndexFunc(res.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s in %v", name, res.Parts)
	}
	return res.Parts[i].Value
}

// withValues gives a model the values of another one of the same parameters.
func withValues(t *testing.T, m, from *Trainer) *Trainer {
	t.Helper()
	for _, q := range m.params.List() {
		x, ok := from.params.Get(q.Name)
		if !ok {
			t.Fatalf("%s is new", q.Name)
		}
		copy(m.params.Value(q), from.params.Value(x))
	}
	m.params.CopyToMomentum()
	return m
}

// TestAnswersOfRows: room for the answers that there are changes no loss and no gradient, room for fewer is a batch
// without the lightest, which are counted.
func TestAnswersOfRows(t *testing.T) {
	full, b, _ := loadDecoder(t, "vqa") // nine answers to four questions
	full.params.CopyToMomentum()
	want := partOf(t, full, b, "vqa")
	cfg := tinyDecoder("vqa")
	cfg.Objective.VQA.Rows = 2.25
	fits := withValues(t, newDecoderModel(t, cfg), full)
	if got := partOf(t, fits, b, "vqa"); !(math.Abs(got-want) <= 1e-6*want) {
		t.Errorf("with room for all nine the loss is %v, want %v", got, want)
	}
	if n := partOf(t, fits, b, "vqa_left_out"); n != 0 {
		t.Errorf("%v answers are left out", n)
	}
	closeTo(t, "gradients", fits.params.Grads(), full.params.Grads(), 1e-6)

	cfg.Objective.VQA.Rows = 1.75 // seven
	few := withValues(t, newDecoderModel(t, cfg), full)
	got := partOf(t, few, b, "vqa")
	if n := partOf(t, few, b, "vqa_left_out"); n != 2 {
		t.Errorf("%v answers are left out, want 2", n)
	}
	weights := b.Floats(batch.AnswerWeights) // 0.6 0.3 0.1, 1, 0.5 0.5, 0.9 0.6 0.3
	weights[2], weights[11] = 0, 0
	if want := partOf(t, full, b, "vqa"); !(math.Abs(got-want) <= 1e-6*want) {
		t.Errorf("the loss is %v, without the lightest %v", got, want)
	}
}

// TestDecoderReadsWhatItShould: an answer depends on the question and on the image, not on padding of either side, and
// a word on no word behind it.
func TestDecoderReadsWhatItShould(t *testing.T) {
	m, b, _ := loadDecoder(t, "vqa")
	plain := partOf(t, m, b, "vqa")
	change := func(f func(x *batch.Batch)) float64 {
		x := batch.New(b.Rows(), b.Columns()...)
		for i := range b.Rows() {
			x.Row(i).Copy(b.Row(i))
		}
		f(x)
		return partOf(t, m, x, "vqa")
	}
	for name, test := range map[string]struct {
		f       func(x *batch.Batch)
		matters bool
	}{
		"a pixel":                    {func(x *batch.Batch) { x.Floats(batch.Images)[0]++ }, true},
		"a word of a question":       {func(x *batch.Batch) { x.Ints(batch.Tokens)[1]++ }, true},
		"a word behind a question":   {func(x *batch.Batch) { x.Row(2).Ints(batch.Tokens)[4]++ }, false},
		"a word of an answer":        {func(x *batch.Batch) { x.Ints(batch.Answers)[1]++ }, true},
		"a word behind an answer":    {func(x *batch.Batch) { x.Ints(batch.Answers)[5+4]++ }, false},
		"an answer without a weight": {func(x *batch.Batch) { x.Row(1).Ints(batch.Answers)[5+1]++ }, false},
		"a length of such an answer": {func(x *batch.Batch) { x.Row(1).Ints(batch.AnswerLengths)[1] = 1 }, false},
		"the weight of an answer":    {func(x *batch.Batch) { x.Floats(batch.AnswerWeights)[0] = .7 }, true},
	} {
		if got := change(test.f); (got != plain) != test.matters {
			t.Errorf("%s: the loss is %v, before %v", name, got, plain)
		}
	}
}

// TestGenerateRefuses: a search that cannot be made says why.
func TestGenerateRefuses(t *testing.T) {
	m, b, _ := loadDecoder(t, "captioning")
	for want, o := range map[string]GenerateOptions{
		"beams must be from 1 to half of the vocabulary, 20 (got 21)": {Beams: 21},
		"from 1 to model.text.positions = 10 tokens (got 11)":         {MaxTokens: 11},
		"at least 5 tokens of at most 5 leave no place for the last":  {MinTokens: 5, MaxTokens: 5},
		"beams must be from 1 to half of the vocabulary, 20 (got -1)": {Beams: -1},
	} {
		check.Fails(m.Writer().Generate(t.Context(), b, o))(t, want)
	}
	m.o.EndID = -1
	check.Fails(m.Writer().Generate(t.Context(), b, GenerateOptions{}))(t, "use a vocabulary with [CLS] and [SEP]")
}

// TestDecoderOfOpenedModel: a model that is opened from its parameters reads the decoder's, and no others for captions.
func TestDecoderOfOpenedModel(t *testing.T) {
	m, b, g := loadDecoder(t, "captioning")
	p := check.Get(Open(m.cfg, m.o, &memorySource{p: m.params}))(t)
	got := check.Get(p.Writer().Generate(t.Context(), b, searches[2]))(t)
	if want := g.ints("expect/words/2/0"); !slices.Equal(append(got[0], -1), want) {
		t.Errorf("wrote %v, want %v", got[0], want)
	}
	for _, q := range p.params.List() {
		if strings.HasPrefix(q.Name, "text/") || strings.HasPrefix(q.Name, "text_proj/") {
			t.Errorf("%s was read", q.Name)
		}
	}
}
