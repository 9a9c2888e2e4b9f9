package objectives

import (
	"math"
	"testing"
)

// TestRamp by hand: 0.4 over 1000 updates, over an epoch of as many, and over whichever of
// both is longer. ALBEF's code has min(1, update/ramp) * alpha with the updates of the first
// epoch as ramp.
func TestRamp(t *testing.T) {
	for name, r := range map[string]Ramp{
		"updates": {To: 0.4, Steps: 1000},
		"epochs":  {To: 0.4, Epochs: 2},
		"both":    {To: 0.4, Steps: 10, Epochs: 2},
		"rounded": {To: 0.4, Epochs: 2.0009},
	} {
		for update, want := range map[int]float64{0: 0, 250: 0.1, 999: 0.3996, 1000: 0.4, 5000: 0.4} {
			if got := r.At(update, 500); !(math.Abs(got-want) <= 1e-15) {
				t.Errorf("%s: after %d updates %v, want %v", name, update, got, want)
			}
		}
	}
	if r := (Ramp{To: 0.7, Epochs: 4}); !(math.Abs(r.At(6, 1.75)-0.6) <= 1e-15) || r.At(7, 1.75) != 0.7 {
		t.Errorf("4 epochs of 1.75 updates: %v after 6, %v after 7", r.At(6, 1.75), r.At(7, 1.75))
	}
	for name, r := range map[string]Ramp{"none": {To: 0.4}, "an epoch of unknown length": {To: 0.4, Epochs: 1}} {
		if got := r.At(0, 0); got != 0.4 {
			t.Errorf("%s: %v from the start, want 0.4", name, got)
		}
	}
}

// TestRampIsWhatItWas compares with the schedule that training computed before losses had
// ramps of their own, bit by bit.
func TestRampIsWhatItWas(t *testing.T) {
	was := func(step int, alpha float64, steps int, epochs float64, perEpoch int) float64 {
		ramp := max(steps, int(math.Round(epochs*float64(perEpoch))))
		if ramp <= 0 || step >= ramp {
			return alpha
		}
		return alpha * float64(step) / float64(ramp)
	}
	for _, r := range []Ramp{{To: 0.4, Epochs: 1}, {To: 0.3, Steps: 7}, {To: 1, Steps: 9, Epochs: 0.7}, {To: 0.4}} {
		for _, perEpoch := range []int{0, 1, 7, 13} {
			for update := range 20 {
				got, want := r.At(update, float64(perEpoch)), was(update, r.To, r.Steps, r.Epochs, perEpoch)
				if math.Float64bits(got) != math.Float64bits(want) {
					t.Errorf("%+v with %d per epoch after %d: %v, was %v", r, perEpoch, update, got, want)
				}
			}
		}
	}
}
