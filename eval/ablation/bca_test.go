package ablation

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// testdata/significance.json is of tools/goldens/significance.py: intervals of scipy's bootstrap with the means of its
// own 499 resamples, and with 200,000 of them; Holm's correction of statsmodels.
func TestSignificanceAsSciPy(t *testing.T) {
	var golden struct {
		BCa []struct {
			Name     string
			X, Means []float64
			Interval [2]float64
			Many     [2]float64
		} `json:"bca"`
		P, Holm []float64
	}
	check.OK(t, json.Unmarshal(check.Get(os.ReadFile("testdata/significance.json"))(t), &golden))
	if len(golden.BCa) != 4 {
		t.Fatalf("%d cases", len(golden.BCa))
	}
	for _, c := range golden.BCa {
		got := interval(c.X, slices.Clone(c.Means))
		near(t, c.Name+", low", got.Low, c.Interval[0], 1e-9)
		near(t, c.Name+", high", got.High, c.Interval[1], 1e-9)
		own := BCa(c.X) // other resamples, fewer of them: within 4 % of the width
		width := c.Many[1] - c.Many[0]
		near(t, c.Name+", low of own resamples", own.Low, c.Many[0], 0.04*width)
		near(t, c.Name+", high of own resamples", own.High, c.Many[1], 0.04*width)
	}
	for i, p := range HolmAdjust(golden.P) {
		near(t, "Holm", p, golden.Holm[i], 1e-15)
	}
}

func TestBCaOfFew(t *testing.T) {
	if got := BCa([]float64{1, 2}); got != nil {
		t.Errorf("two values have the interval %v", got)
	}
	if got := BCa([]float64{2, 2, 2}); *got != (Interval{2, 2}) || !got.Excludes() {
		t.Errorf("equal values: %v", got)
	}
	if a, b := BCa([]float64{1, 2, 4}), BCa([]float64{1, 2, 4}); *a != *b {
		t.Errorf("%v, again %v", a, b)
	}
}
