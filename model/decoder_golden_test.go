package model

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/tasks/captioning"
	"github.com/geoalign/geoalign/tasks/vqa"
)

// tinyDecoder is the model of tools/goldens/decoder.py, for vqa or captioning.
func tinyDecoder(mode string) config.Config {
	c := tinyConfig()
	c.Queue.Size = 0
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight, c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0, 0, 0
	c.Objective.Distill = objectives.Distill{Alpha: 0.4}
	if mode == "vqa" {
		c.Objective.VQA = vqa.Loss{Weighted: section.Weigh(1), Answers: 3, Tokens: 5}
	} else {
		c.Objective.Captioning = captioning.Loss{Weighted: section.Weigh(1), Decoder: captioning.Transformer}
	}
	return c
}

// newDecoderModel returns the model of a tinyDecoder.
func newDecoderModel(t testing.TB, cfg config.Config) *Trainer {
	t.Helper()
	return newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, MaskID: 4, BeginID: 2, EndID: 3})
}

// loadDecoder returns a model with a golden's weights and twins, and its batch.
func loadDecoder(t testing.TB, mode string) (*Trainer, *batch.Batch, golden) {
	t.Helper()
	g, m := openGolden(t, "decoder_"+mode), newDecoderModel(t, tinyDecoder(mode))
	g.give(m)
	b := g.fill(batch.New(4, m.Columns()...))
	return m, b, g
}

// TestGoldenDecoder compares a step of answers and one of captions, with a teacher, with an independent PyTorch
// implementation: the loss to 1e-5 and every gradient by name to 1e-4 of its largest element.
func TestGoldenDecoder(t *testing.T) {
	for _, mode := range []string{"vqa", "captioning"} {
		t.Run(mode, func(t *testing.T) {
			m, b, g := loadDecoder(t, mode)
			stepOf(t, m, &feed.Step{Batch: b})
			g.step(m)
		})
	}
}

// TestGoldenRank: candidates have the scores of whole texts that are read one by one, however few of them are ranked.
func TestGoldenRank(t *testing.T) {
	for _, mode := range []string{"vqa", "captioning"} {
		m, b, g := loadDecoder(t, mode)
		want := g.floats("expect/scores")
		candidates := [][]int32{{2, 7, 3}, {2, 8, 9, 3}, {2, 7, 9, 11, 3}, {2, 7, 9, 3}, {2, 30, 3}, {2, 8, 3}, {2, 3}}
		r := check.Get(m.Writer().Ranker(candidates, 0))(t)
		for range 2 { // again in the same memory
			got := check.Get(r.Rank(t.Context(), b))(t)
			if rel, err := relative(got, want); err != nil || rel > 1e-5 {
				t.Errorf("%s: scores %v, want %v (%v)", mode, got, want, err)
			}
		}
		// One row alone, some candidates, each alone.
		one := batch.New(1, b.Columns()...)
		one.Row(0).Copy(b.Row(3))
		for i, c := range candidates {
			r := check.Get(m.Writer().Ranker([][]int32{c}, 0))(t)
			got := check.Get(r.Rank(t.Context(), one))(t)
			if rel, err := relative(got, want[3*7+i:][:1]); err != nil || rel > 1e-5 {
				t.Errorf("%s: candidate %v has the score %v, want %v (%v)", mode, c, got, want[3*7+i], err)
			}
		}
	}
}

// searches are those of tools/goldens/decoder.py.
var searches = []GenerateOptions{
	{Beams: 1, MaxTokens: 6, LengthPenalty: 1}, {Beams: 2, MaxTokens: 6, LengthPenalty: 1}, {Beams: 3, MaxTokens: 8, LengthPenalty: 1},
	{Beams: 3, MinTokens: 2, MaxTokens: 8}, {Beams: 4, MinTokens: 1, MaxTokens: 9, LengthPenalty: 2}, {Beams: 3, MinTokens: 3, MaxTokens: 4, LengthPenalty: 1},
}

// TestGoldenGenerate: beam search writes the sequences of a plain search, which for answers are those of transformers.
func TestGoldenGenerate(t *testing.T) {
	for _, mode := range []string{"vqa", "captioning"} {
		m, b, g := loadDecoder(t, mode)
		for k, o := range searches {
			got := check.Get(m.Writer().Generate(t.Context(), b, o))(t)
			for i, words := range got {
				want := g.ints(fmt.Sprintf("expect/words/%d/%d", k, i))
				if !slices.Equal(append(words, -1), want) {
					t.Errorf("%s, %+v, row %d: %v, want %v", mode, o, i, words, want)
				}
			}
		}
	}
}
