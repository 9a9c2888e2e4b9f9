package model

import (
	"slices"
	"testing"
)

// TestRecompute: a step that computes the activations of its blocks again has the same
// bits, in loss, gradients and features, and less memory.
func TestRecompute(t *testing.T) {
	cfg := tinyConfig()
	cfg.Model.Text.Dropout = 0.1
	cfg.Model.Image.Depth, cfg.Model.Text.Layers, cfg.Model.Text.FusionLayers = 4, 3, 3
	kept := build(t, cfg, "plain", 1)
	cfg.Compute.Recompute = true
	again := build(t, cfg, "plain", 1)
	for i := range 3 {
		c := Control{Step: i, Alpha: 0.1 * float64(i), UseQueue: i > 0}
		b := randomBatch(kept, uint64(i))
		want, got := step(t, kept, b, c), step(t, again, b, c)
		if want.Loss != got.Loss || !slices.Equal(want.Parts, got.Parts) {
			t.Fatalf("step %d: %v and %v", i, got, want)
		}
		if !sameBits(kept.params.Grads(), again.params.Grads()) {
			t.Fatalf("step %d: gradients differ", i)
		}
	}
	a, b := again.Machine().Memory(), kept.Machine().Memory()
	if a >= b*8/10 {
		t.Errorf("buffers take %d bytes, %d without computing again", a, b)
	}
	t.Logf("buffers take %.0f %% of what they take without", 100*float64(a)/float64(b))
}
