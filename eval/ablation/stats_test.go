package ablation

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestSummarise(t *testing.T) {
	s := Summarise([]float64{2, 4, 4, 4, 5, 5, 7, 9}) // squares add up to 32
	near(t, "mean", s.Mean, 5, 1e-15)
	near(t, "sd", s.SD, math.Sqrt(32.0/7), 1e-15)
	if s := Summarise(nil); s.N != 0 || !math.IsNaN(s.Mean) || !math.IsNaN(s.SD) {
		t.Errorf("of nothing: %v", s)
	}
	if s := Summarise([]float64{3}); s.N != 1 || s.Mean != 3 || !math.IsNaN(s.SD) {
		t.Errorf("of one: %v", s)
	}
}

// Student's distribution in closed form: for 1 degree of freedom the two tails beyond t
// hold 1 - 2 atan(t)/pi, for 2 they hold 1 - t/sqrt(2+t^2).
func TestPaired(t *testing.T) {
	// Differences 1, 3: mean 2, standard error 1.
	r := Paired([]float64{11, 23}, []float64{10, 20})
	near(t, "t", r.T, 2, 1e-14)
	near(t, "p of 1 degree", r.P, 1-2*math.Atan(2)/math.Pi, 1e-12)
	// Differences 1, 2, 3: mean 2, standard error 1/sqrt(3).
	r = Paired([]float64{1, 2, 3}, []float64{0, 0, 0})
	tt := 2 * math.Sqrt(3)
	near(t, "t", r.T, tt, 1e-14)
	near(t, "p of 2 degrees", r.P, 1-tt/math.Sqrt(2+tt*tt), 1e-12)
	if r.DF != 2 || r.Kind != "paired" || r.Differs() {
		t.Errorf("%+v", r)
	}
	if back := Paired([]float64{0, 0, 0}, []float64{1, 2, 3}); back.P != r.P || back.T != -r.T {
		t.Errorf("%+v is not the mirror of %+v", back, r)
	}
}

// Quantiles of printed tables: 97.5 % lie below 2.228139 for 10 degrees of freedom, below
// 4.302653 for 2.
func TestQuantiles(t *testing.T) {
	near(t, "10", test("", 2.228139, 1, 10).P, 0.05, 1e-6)
	near(t, "2", test("", -4.302653, 1, 2).P, 0.05, 1e-6)
}

// Means 2 and 6 with variances 1 and 4 of 3 values each: t = -4/sqrt(5/3), degrees
// (5/3)^2 / ((1/9 + 16/9)/2) = 50/17.
func TestWelch(t *testing.T) {
	r := Welch([]float64{1, 2, 3}, []float64{4, 6, 8})
	near(t, "t", r.T, -4/math.Sqrt(5.0/3), 1e-14)
	near(t, "degrees", r.DF, 50.0/17, 1e-14)
	lo, hi := test("", r.T, 1, 3).P, test("", r.T, 1, 2).P
	if !(lo < r.P && r.P < hi) || r.Kind != "welch" {
		t.Errorf("%+v is not between %v and %v", r, lo, hi)
	}
}

func TestNoSpread(t *testing.T) {
	for _, r := range []Test{Paired([]float64{3, 4}, []float64{3, 4}), Welch([]float64{3, 3}, []float64{3, 3})} {
		if r.P != 1 || r.Differs() {
			t.Errorf("equal values: %+v", r)
		}
	}
	for _, r := range []Test{Paired([]float64{3, 4}, []float64{2, 3}), Welch([]float64{3, 3}, []float64{2, 2, 2})} {
		if r.P != 0 || !r.Differs() || math.IsNaN(r.DF) {
			t.Errorf("values that always differ: %+v", r)
		}
	}
}

func TestCompareChoosesTheTest(t *testing.T) {
	a := map[int64]float64{1: 1, 2: 2, 3: 3}
	if r := Compare(a, map[int64]float64{3: 30, 1: 10, 2: 20}); r == nil || r.Kind != "paired" {
		t.Errorf("the same seeds: %+v", r)
	} else if want := Paired([]float64{1, 2, 3}, []float64{10, 20, 30}); *r != want {
		t.Errorf("got %+v, want %+v", *r, want)
	}
	for _, b := range []map[int64]float64{{1: 1, 2: 2}, {1: 1, 2: 2, 4: 3}} {
		if r := Compare(a, b); r == nil || r.Kind != "welch" {
			t.Errorf("other seeds: %+v", r)
		}
	}
	if r := Compare(a, map[int64]float64{1: 1}); r != nil || r.Differs() {
		t.Errorf("one value: %+v", r)
	}
}
