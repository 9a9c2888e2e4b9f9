package bicubic

import (
	"math"
	"testing"
)

// TestResize compares with torch.nn.functional.interpolate(x, size=(5, 3), mode="bicubic"), torch 2.15.
func TestResize(t *testing.T) {
	x := []float64{0, 1, 4, 2, 2, 4, 1, 0, 1, 4, 2, 2}
	want := []float64{-0.124342593, 2.78125, 2.554898148, 1.026453704, 2.74525, 1.332101852, 2.33912037, 2.78125,
		0.091435185, 1.966162037, 3.08725, 1.076393519, 1.381388889, 3.32925, 2.145166667}
	got := Resize(x, 3, 4, 5, 3)
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= 1e-8) {
			t.Errorf("value %d: %v, want %v", i, got[i], w)
		}
	}
}
