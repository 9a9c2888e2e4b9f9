package model

import (
	"math"
	"testing"
)

// TestMeanCosine on rows of any length: (3, 4) and (4, 3) have the cosine 24/25, orthogonal ones 0, opposite ones -1.
func TestMeanCosine(t *testing.T) {
	x, y := []float32{3, 4, 1, 0, 2, 2}, []float32{8, 6, 0, 5, -1, -1}
	for rows, want := range map[int]float64{1: 0.96, 2: 0.48, 3: -0.04 / 3} {
		if got := meanCosine(x[:2*rows], y[:2*rows], 2); !(math.Abs(got-want) <= 1e-15) {
			t.Errorf("%d rows: %v, want %v", rows, got, want)
		}
	}
	if got := meanCosine(x, []float32{0, 0, 1, 0, 1, 0}, 2); !math.IsNaN(got) {
		t.Errorf("a row of length 0 has the cosine %v", got)
	}
}
