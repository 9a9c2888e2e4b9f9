package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
)

// TestStepMasksItsCaptions: a step draws the masks that Masker draws from the stream of its
// batch, puts the masked captions behind the clean ones, and reads the masked places behind
// the pairs of matching, the teacher's at their own places.
func TestStepMasksItsCaptions(t *testing.T) {
	for _, matching := range []float64{0, 1} {
		cfg := tinyConfig()
		cfg.Objective.MLM.Prob, cfg.Objective.ITM.Weight = 0.4, matching
		m := build(t, cfg, "", 2)
		b := randomBatch(m, 1)
		const n, l = 4, 6
		seen := map[int]bool{}
		for _, counter := range []int{3, 4} {
			s := m.feed(b, Control{Step: counter})
			stepOf(t, m, s)
			k := objectives.Masker{Prob: 0.4, Vocab: tinyVocab, MaskID: 4, Capacity: m.MaskRows()}
			var want objectives.Masked
			check.OK(t, k.Apply(rng.New(cfg.Run.Seed, rng.Mask, uint64(counter)), b.Tokens, b.Lengths, &want))
			text, lengths := m.ints("text"), m.ints("lengths")
			if !slices.Equal(text[:n*l], b.Tokens) || !slices.Equal(text[n*l:], want.Tokens) || slices.Equal(want.Tokens, b.Tokens) {
				t.Errorf("batch %d: captions %v, want %v and %v", counter, text, b.Tokens, want.Tokens)
			}
			if !slices.Equal(lengths[:n], b.Lengths) || !slices.Equal(lengths[n:], b.Lengths) || !slices.Equal(m.ints("mask labels"), want.Labels) {
				t.Errorf("batch %d: lengths %v, labels %v, want %v", counter, lengths, m.ints("mask labels"), want.Labels)
			}
			first := int32(3 * n * int(matching))
			for i, p := range want.Positions {
				if m.ints("mask places")[i] != p+first*l || m.ints("mask texts")[i] != p/l+first || m.ints("teacher mask places")[i] != p || m.ints("teacher mask texts")[i] != p/l {
					t.Fatalf("batch %d: place %d of text %d is read at %d of %d", counter, p, p/l, m.ints("mask places")[i], m.ints("mask texts")[i])
				}
			}
			seen[want.Count*1000+int(want.Positions[0])] = true
		}
		if len(seen) != 2 {
			t.Error("both batches are masked alike: the test shows nothing")
		}
	}
}

// TestStepFollowsItsSchedules: the teacher's weight grows over the updates of an epoch, and
// the queue is read from queue.start_steps on.
func TestStepFollowsItsSchedules(t *testing.T) {
	cfg := tinyConfig()
	cfg.Objective.Distill.RampSteps, cfg.Objective.Distill.RampEpochs = 0, 2
	cfg.Queue.StartSteps = 3
	m := build(t, cfg, "", 2)
	s := m.feed(randomBatch(m, 1), Control{})
	s.PerEpoch = 4
	for update := range 12 {
		s.Update, s.Counter = update, update
		stepOf(t, m, s)
		if want := 0.4 * min(float64(update)/8, 1); !(math.Abs(float64(m.floats("alpha")[0])-want) <= 1e-7) {
			t.Errorf("update %d: alpha is %v, want %v", update, m.floats("alpha")[0], want)
		}
		columns := int32(4)
		if update >= 3 {
			columns += int32(m.queue.Filled)
		}
		if got := m.ints("columns")[0]; got != columns {
			t.Errorf("update %d: %d columns, want %d", update, got, columns)
		}
		check.OK(t, m.After())
	}
	if m.queue.Filled != 8 {
		t.Errorf("%d entries of the queue", m.queue.Filled)
	}
}

// TestStepDrawsItsShareOfTheNoise: each rank reads its rows of one stream, the first of them
// those that a single process reads, and the second others.
func TestStepDrawsItsShareOfTheNoise(t *testing.T) {
	cfg := tinyConfig()
	cfg.Objective.Geometric.Weight, cfg.Objective.Geometric.Neighbours, cfg.Objective.Geometric.Pool = 1, 2, 2
	cfg.Train.BatchSize = 2
	m := build(t, cfg, "", 2)
	for _, q := range [][]float32{m.queue.ImageBackbone, m.queue.TextBackbone} {
		copy(q, slices.Repeat([]float32{1, -1, 2, 0.5}, len(q)/4))
	}
	m.queue.Filled = m.queue.size
	noise := []string{"noise i2t", "noise t2i", "noise of image neighbours", "noise of text neighbours"}
	draw := func(rank, ranks int) (all [][]float32) {
		s := m.feed(randomBatch(m, 1), Control{Step: 5})
		s.Rank, s.Ranks = rank, ranks
		stepOf(t, m, s)
		for _, name := range noise {
			all = append(all, slices.Clone(m.floats(name)))
		}
		return all
	}
	alone, first, second := draw(0, 1), draw(0, 2), draw(1, 2)
	for i, name := range noise {
		if i == 0 || i == 2 { // the first of its stream
			if !sameBits(alone[i], first[i]) {
				t.Errorf("%s: the first rank draws %v, a single process %v", name, first[i], alone[i])
			}
		}
		if sameBits(first[i], second[i]) {
			t.Errorf("%s: both ranks draw %v", name, first[i])
		}
	}
}
