package model

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// tinyGRU is tinyCLIP whose captions pass recurrent units, with a teacher and a queue.
func tinyGRU() config.Config {
	c := tinyCLIP("sphere")
	c.Model.Text = encoders.TextOptions{Style: encoders.StyleGRU, Layers: 2, Width: 24, GRU: encoders.GRU{Embedding: 7, Directions: encoders.DirectionsConcat}, Dropout: 0.2}
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
	x := randomPairs(m, 5)
	b := batch.New(1, append(m.Image().Columns(), m.Text().Columns()...)...)
	copy(b.Floats(batch.Images), x.Images)
	copy(b.Ints(batch.Tokens), x.Tokens[:cfg.Data.Tokens])
	const words = 4
	b.Ints(batch.Lengths)[0] = words
	for layer, d := range []int{cfg.Model.Text.GRU.Embedding, cfg.Model.Text.Width} {
		e := check.Get(m.Explainer().Pair(t.Context(), b, Blocks{1, layer, 0}))(t)
		if e.Text.N != cfg.Data.Tokens || e.Text.D != d {
			t.Fatalf("layer %d: %d places of %d channels, want %d and %d", layer, e.Text.N, e.Text.D, cfg.Data.Tokens, d)
		}
		for i := range e.Text.N {
			if some := slices.ContainsFunc(e.Text.Grads[i*d:][:d], func(v float32) bool { return v != 0 }); some != (i < words) {
				t.Errorf("layer %d: place %d of %d words has a gradient: %v", layer, i, words, some)
			}
		}
	}
}
