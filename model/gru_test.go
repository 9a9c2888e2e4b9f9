package model

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// tinyGRU is tinyCLIP whose captions pass recurrent units, with a teacher and a queue.
func tinyGRU() config.Config {
	c := tinyCLIP("sphere")
	c.Model.Text = config.Text{Style: config.StyleGRU, Layers: 2, Width: 24, GRU: config.GRU{Embedding: 7, Directions: config.GRUConcat}, Dropout: 0.2}
	c.Momentum.Enabled, c.Queue.Size, c.Objective.ITC.Weight, c.Objective.Distill.Alpha = true, 10, 1, 0.4
	return c
}

// TestGRUStep: a step with teacher and queue whose layers are computed again has the same bits and
// takes less memory, and padding changes nothing.
func TestGRUStep(t *testing.T) {
	cfg := tinyGRU()
	kept := buildCLIP(t, cfg)
	cfg.Compute.Recompute = true
	again := buildCLIP(t, cfg)
	for i := range 3 {
		c := Control{Step: i, Alpha: 0.1 * float64(i), UseQueue: i > 0}
		b := randomPairs(kept, uint64(i))
		want, got := step(t, kept, b, c), step(t, again, b, c)
		if want.Loss != got.Loss || !slices.Equal(want.Parts, got.Parts) || !sameBits(kept.params.Grads(), again.params.Grads()) {
			t.Fatalf("step %d: %v, computed again %v", i, want, got)
		}
	}
	if a, b := again.Machine().Memory(), kept.Machine().Memory(); a >= b {
		t.Errorf("buffers take %d bytes, %d without computing again", a, b)
	}
	c, b := Control{Step: 9}, randomPairs(kept, 7)
	want := step(t, kept, b, c)
	for r, n := range b.Lengths {
		for k := int(n); k < cfg.Data.Tokens; k++ {
			b.Tokens[r*cfg.Data.Tokens+k] = 9
		}
	}
	if got := step(t, again, b, c); got.Loss != want.Loss {
		t.Errorf("padding makes the loss %v from %v", got.Loss, want.Loss)
	}
}

// TestGRUExplained: the words of a caption have gradients of the score, those of padding none.
func TestGRUExplained(t *testing.T) {
	cfg := tinyGRU()
	m := buildCLIP(t, cfg)
	at := m.DefaultBlocks()
	if err := m.CheckBlocks(at); err != nil || at.Text != 1 {
		t.Fatalf("blocks %v, error %v", at, err)
	}
}
