package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
)

// TestBF16 runs the golden step with products in bfloat16: losses within 1 % of float32,
// gradients of nearly the same direction, and not the same numbers. A bfloat16 number
// has 8 bits, so operands are off by up to 0.4 %.
func TestBF16(t *testing.T) {
	full, b, g := loadGolden(t, "pair")
	e := engineOf(t, kernel.Options{Threads: 2, Precision: "bf16"})
	half := modelOn(t, full.cfg, e)
	copy(half.params.values, full.params.values)
	copy(half.params.momentum, full.params.momentum)
	copy(half.queue.Image, full.queue.Image)
	copy(half.queue.Text, full.queue.Text)
	half.queue.Filled, half.queue.Pointer = full.queue.Filled, full.queue.Pointer
	run := func(m *Trainer) *Result {
		tg := m.step
		check.Get(m.load(b, Control{Alpha: 0.4, UseQueue: true}))(t)
		copy(m.floats("noise i2t"), g.floats("input/noise_i2t"))
		copy(m.floats("noise t2i"), g.floats("input/noise_t2i"))
		check.OK(t, tg.run(t.Context()))
		return check.Get(tg.read())(t)
	}
	want, got := *run(full), *run(half)
	if d := math.Abs(got.Loss/want.Loss - 1); !(d < 0.01) || d == 0 {
		t.Errorf("loss %v, float32 %v", got.Loss, want.Loss)
	}
	var ab, aa, bb float64
	for i, x := range full.params.grads {
		y := half.params.grads[i]
		ab, aa, bb = ab+float64(x)*float64(y), aa+float64(x)*float64(x), bb+float64(y)*float64(y)
	}
	cosine := ab / math.Sqrt(aa*bb)
	t.Logf("loss %.5f, float32 %.5f; cosine of the gradients %.6f", got.Loss, want.Loss, cosine)
	if !(cosine > 0.999) {
		t.Errorf("cosine of the gradients %v", cosine)
	}
}
