package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestCorrelateConstant: a constant list has no correlation, and no NaN reaches a log.
func TestCorrelateConstant(t *testing.T) {
	for _, x := range [][2][]float64{{{1, 1, 1}, {1, 2, 3}}, {{1, 2, 3}, {.1, .1, .1}}, {{1}, {2}}, {}} {
		if c := Correlate(x[0], x[1]); c != (Correlation{}) {
			t.Errorf("%v: %+v", x, c)
		}
	}
	if c := Correlate([]float64{1, 2, 2, 9}, []float64{10, 20, 20, 30}); c.Spearman != 1 || c.Pearson == 1 {
		t.Errorf("%+v", c)
	}
	s := MeasureSTS([]float64{1, 2, 3}, []float64{1, 2, 3}, []string{"a", "b", "c"}, []int{2, 2, 3})
	if len(s.Parts) != 2 || s.Parts[0].Pairs != 2 || s.Parts[1].Name != "c" || s.Parts[1].Spearman != 0 ||
		!(math.Abs(s.Weighted.Spearman-2./3) <= 1e-15) || s.Mean.Spearman != .5 {
		t.Errorf("%+v", s)
	}
}

// TestThresholds: literal cases, with ties and with classes that are left out.
func TestThresholds(t *testing.T) {
	if f := FixedThresholds(3); !slices.Equal(f, Thresholds{2. / 3, 1. / 3}) ||
		!slices.Equal(FixedThresholds(2), Thresholds{.5}) {
		t.Error(f)
	}
	// The cosine must be above a threshold: .5 itself is not near.
	for c, want := range map[float64]int{.9: 0, .5: 1, .4: 1} {
		if got := FixedThresholds(2).Place(c); got != want {
			t.Errorf("%g is at %d, want %d", c, got, want)
		}
	}
	for _, c := range []struct {
		cosines []float64
		labels  []int32
		near    []int32
		want    Thresholds
	}{
		{[]float64{.9, .1, .8, .2}, []int32{1, 0, 1, 0}, []int32{1, 0}, Thresholds{.5}},
		{[]float64{.9, .8}, []int32{0, 0}, []int32{1, 0}, Thresholds{2}},  // none is near
		{[]float64{.9, .8}, []int32{1, 1}, []int32{1, 0}, Thresholds{-2}}, // all are
		// equal cosines are one class
		{[]float64{.5, .5, .5}, []int32{1, 1, 0}, []int32{1, 0}, Thresholds{-2}},
		{[]float64{.9, .5, .5, .1}, []int32{0, 1, 2, 2}, []int32{0, 1, 2}, Thresholds{.7, .7}}, // class 1 is left out
	} {
		got := TuneThresholds(c.cosines, c.labels, c.near)
		for i := range got {
			if !(math.Abs(got[i]-c.want[i]) <= 1e-12) {
				t.Errorf("%v of %v: %v, want %v", c.labels, c.cosines, got, c.want)
			}
		}
	}
	if got := ClusterThresholds([]float64{.1, .2, .9, 1}, 2); !(math.Abs(got[0]-.55) <= 1e-12) {
		t.Error(got)
	}
	for n := range 4 { // fewer pairs than clusters
		x := []float64{.3, .3, .1}[:n]
		if got := ClusterThresholds(x, 3); len(got) != 2 || got[0] < got[1] {
			t.Error(n, got)
		}
	}
	if got := MatchClusters([]int{0, 0, 1, 1, 2}, []int32{2, 2, 0, 1, 0}, 3); !slices.Equal(got, []int32{2, 1, 0}) &&
		!slices.Equal(got, []int32{2, 0, 1}) {
		t.Error(got)
	}
}

// TestClusterThresholds compares with a search over all cuts.
func TestClusterThresholds(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for trial := range 60 {
		n := 3 + g.IntN(20)
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Round(100*g.Float64()) / 100
		}
		spread := func(t Thresholds) (sum float64) {
			for k := range 3 {
				var own []float64
				mean := 0.0
				for _, v := range x {
					if t.Place(v) == k {
						own = append(own, v)
						mean += v
					}
				}
				mean /= float64(len(own))
				for _, v := range own {
					sum += (v - mean) * (v - mean)
				}
			}
			return sum
		}
		best := math.Inf(1)
		for a := range 101 {
			for b := range a + 1 {
				best = min(best, spread(Thresholds{float64(a)/100 - .005, float64(b)/100 - .005}))
			}
		}
		if got := spread(ClusterThresholds(x, 3)); got > best+1e-12 {
			t.Errorf("trial %d: %g, want %g", trial, got, best)
		}
	}
}

// TestIsotropyExtremes: equal rows are one direction, and axes in both directions are all of them.
func TestIsotropyExtremes(t *testing.T) {
	s, err := MeasureIsotropy([]float32{1, 2, 1, 2, 1, 2}, 3, 2, [][2]int{{0, 1}})
	if err != nil || !(math.Abs(s.Cosine-1) <= 1e-12) || s.EffectiveRank != 0 || !(math.Abs(s.Uniformity) <= 1e-12) ||
		!(math.Abs(s.Alignment) <= 1e-12) {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = MeasureIsotropy([]float32{1, 0, -1, 0, 0, 1, 0, -1}, 4, 2, nil)
	if err != nil || !(math.Abs(s.Cosine+1./3) <= 1e-12) || !(math.Abs(s.EffectiveRank-2) <= 1e-12) ||
		!(math.Abs(s.Participation-2) <= 1e-12) || !(math.Abs(s.IsoScore-1) <= 1e-12) || s.Alignment != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if len(s.Values()) != 5 {
		t.Error(s.Values())
	}
	s, err = MeasureIsotropy([]float32{1, 0, 2, 0, 5, 0}, 3, 2, nil)
	if err != nil || !(math.Abs(s.IsoScore) <= 1e-12) || !(math.Abs(s.Participation-1) <= 1e-12) {
		t.Errorf("%+v, %v", s, err)
	}
	for k := range 50 { // equal rows are 0 apart, not less, however their length is rounded
		x, y := float32(k)/7, float32(50-k)/3
		if s, err := MeasureIsotropy([]float32{x, y, x, y}, 2, 2, [][2]int{{0, 1}}); err != nil || s.Alignment < 0 ||
			s.Uniformity > 0 {
			t.Errorf("%g and %g: %+v, %v", x, y, s, err)
		}
	}
	for n := 2; n <= 60; n++ { // nor do they fill a direction, however their mean is rounded
		s, err := MeasureIsotropy(slices.Repeat([]float32{.1, -2.7, 3.3e-3}, n), n, 3, nil)
		if err != nil || s.EffectiveRank != 0 || s.Participation != 0 || s.IsoScore != 0 || s.Cosine > 1 {
			t.Errorf("%d equal rows: %+v, %v", n, s, err)
		}
	}
	if _, err := MeasureIsotropy([]float32{0, 0, 0, 0}, 2, 2, nil); err != nil { // rows without direction
		t.Error(err)
	}
	if _, err := MeasureIsotropy([]float32{1, float32(math.NaN()), 0, 0}, 2, 2, nil); err == nil {
		t.Error("NaN is measured")
	}
	if _, err := MeasureIsotropy([]float32{1, 2}, 1, 2, nil); err == nil {
		t.Error("one row is measured")
	}
}

// TestSentimentExtremes: neutral labels alone have no sign, and one sign has an F1.
func TestSentimentExtremes(t *testing.T) {
	s := MeasureSentiment([]float64{0, .6}, []float64{0, 0})
	if s.Accuracy2 != 0 || s.F1 != 0 || s.Accuracy7 != 50 || s.NonNegative != 100 || s.MAE != .3 || s.Pearson != 0 {
		t.Errorf("%+v", s)
	}
	if s = MeasureSentiment([]float64{1, 2}, []float64{1, 3}); s.Accuracy2 != 100 || s.F1 != 100 || s.Accuracy7 != 50 ||
		len(s.Values()) != 6 {
		t.Errorf("%+v", s)
	}
	if _, err := FitLinear([]float32{1}, 1, []float64{1}, 0); err == nil {
		t.Error("one row is fitted")
	}
	nan, inf := math.NaN(), math.Inf(1)
	for want, f := range map[string]func() (*LinearLayer, error){
		"row 1": func() (*LinearLayer, error) {
			return FitLinear([]float32{1, 2, 3, float32(nan), 5, 6}, 2, []float64{1, 2, 3}, 1)
		},
		"target 2": func() (*LinearLayer, error) {
			return FitLinear([]float32{1, 2, 3}, 1, []float64{1, 2, inf}, 1)
		},
		"penalty": func() (*LinearLayer, error) { return FitLinear([]float32{1, 2}, 1, []float64{1, 2}, nan) },
	} {
		if l, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not finite: %+v, %v", want, l, err)
		}
	}
	l, err := FitLinear([]float32{1, 1, 1}, 1, []float64{1, 2, 6}, 1) // a feature that tells nothing
	if err != nil || !(math.Abs(l.Predict([]float32{7})[0]-3) <= 1e-12) {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestMeasureEmotion: 2 of 3 utterances with it and 3 of 5 without are told right, worked out by hand.
func TestMeasureEmotion(t *testing.T) {
	has := []bool{true, true, true, false, false, false, false, false}
	told := []bool{true, true, false, true, true, false, false, false}
	e := MeasureEmotion(told, has)
	// F1 with: 2*2/(3+4), without: 2*3/(5+4)
	want := Emotion{Share: 37.5, WeightedAccuracy: 100 * (2./3 + 3./5) / 2, F1: 100 * (3./8*4./7 + 5./8*6./9)}
	if math.Abs(e.F1-want.F1) > 1e-9 || math.Abs(e.WeightedAccuracy-want.WeightedAccuracy) > 1e-9 || e.Share != want.Share {
		t.Errorf("%+v, want %+v", e, want)
	}
}
