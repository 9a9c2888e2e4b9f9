package eval

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
)

func probeEngine(t *testing.T) *compute.Engine {
	t.Helper()
	e := check.Get(compute.New(compute.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(e.Close)
	return e
}

// blobs returns n points around the corners of a simplex in d dimensions, the third of
// which never varies.
func blobs(r *rand.Rand, n, d, classes int, spread float64) (x []float32, labels []int32) {
	for i := range n {
		c := i % classes
		labels = append(labels, int32(c))
		for j := range d {
			v := spread*r.NormFloat64() + 40
			switch {
			case j == 2:
				v = 7
			case j == c || j == d-1-c:
				v += 3
			}
			x = append(x, float32(v))
		}
	}
	return x, labels
}

// TestProbeSeparable: three clouds far apart are told apart without an error, by the
// probe and by neighbours, and clouds of one kind by chance only.
func TestProbeSeparable(t *testing.T) {
	e, r := probeEngine(t), rand.New(rand.NewPCG(6, 1))
	x, labels := blobs(r, 90, 8, 3, .3)
	y, want := blobs(r, 60, 8, 3, .3)
	p := check.Get(FitProbe(t.Context(), e, x, labels, ProbeOptions{Classes: 3, Decay: 1e-3}))(t)
	got := check.Get(p.Predict(y, 60))(t)
	if a := Accuracy(got, want); a != 100 {
		t.Errorf("accuracy %v of the probe", a)
	}
	for i := range x { // neighbours look at directions
		x[i] -= 40
	}
	for i := range y {
		y[i] -= 40
	}
	got = check.Get(NearestNeighbours(t.Context(), e, x, labels, 3, y, 60, 20))(t)
	if a := Accuracy(got, want); a < 95 {
		t.Errorf("accuracy %v of neighbours", a)
	}
	r.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	p = check.Get(FitProbe(t.Context(), e, x, labels, ProbeOptions{Classes: 3, Decay: 1e-3}))(t)
	got = check.Get(p.Predict(y, 60))(t)
	if a := Accuracy(got, want); a > 65 {
		t.Errorf("accuracy %v with shuffled labels", a)
	}
}

// TestProbeIsTheMinimum: the gradient of the loss, written out, vanishes at the fit.
func TestProbeIsTheMinimum(t *testing.T) {
	e, r := probeEngine(t), rand.New(rand.NewPCG(6, 2))
	const n, d, k, decay = 70, 5, 4, .02
	x, labels := make([]float32, n*d), make([]int32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64()) * float32(1+i%d)
	}
	for i := range labels {
		labels[i] = int32(r.IntN(k))
	}
	p := check.Get(FitProbe(t.Context(), e, x, labels, ProbeOptions{Classes: k, Decay: decay}))(t)
	z := p.prepared(x, n)
	grad := make([]float64, k*(d+1))
	for i := range n {
		score := make([]float64, k)
		var sum float64
		for c := range k {
			s := float64(p.bias[c])
			for j := range d {
				s += float64(p.weight[c*d+j]) * float64(z[i*d+j])
			}
			score[c] = math.Exp(s)
			sum += score[c]
		}
		for c := range k {
			g := score[c] / sum
			if c == int(labels[i]) {
				g--
			}
			for j := range d {
				grad[c*d+j] += g * float64(z[i*d+j]) / n
			}
			grad[k*d+c] += g / n
		}
	}
	for i := range p.weight {
		grad[i] += decay * float64(p.weight[i])
	}
	for i, g := range grad {
		if !(math.Abs(g) <= 1e-3) {
			t.Errorf("gradient %d is %v", i, g)
		}
	}
	if p.weight[0] == 0 {
		t.Error("nothing was fitted")
	}
}

// TestNearestNeighboursByHand: three neighbours of a point on the circle at 0 degrees
// are at 10 (class 1), 20 and 25 degrees (class 0): exp(.9848/.07) against
// exp(.9397/.07) + exp(.9063/.07), 1.29e6 against 6.77e5 + 4.20e5.
func TestNearestNeighboursByHand(t *testing.T) {
	e := probeEngine(t)
	at := func(degrees ...float64) (x []float32) {
		for i, a := range degrees {
			s := 1 + float64(i) // length does not matter
			x = append(x, float32(s*math.Cos(a*math.Pi/180)), float32(s*math.Sin(a*math.Pi/180)))
		}
		return x
	}
	x, labels := at(10, 20, 25, 180), []int32{1, 0, 0, 2}
	for _, c := range []struct {
		k    int
		want []int32
	}{{1, []int32{1, 2}}, {3, []int32{1, 2}}, {20, []int32{1, 2}}} {
		got, err := NearestNeighbours(t.Context(), e, x, labels, 3, at(0, 170), 2, c.k)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("k = %d: %v %v, want %v", c.k, got, err, c.want)
		}
	}
	// At 12, 13 and 14 degrees the two together outweigh the one.
	got, err := NearestNeighbours(t.Context(), e, at(12, 13, 14), []int32{1, 0, 0}, 2, at(0), 1, 3)
	if err != nil || got[0] != 0 {
		t.Errorf("got %v %v, want the class of two", got, err)
	}
}

func TestProbeMisuse(t *testing.T) {
	e := probeEngine(t)
	x := []float32{1, 2, 3, 4}
	for _, c := range []struct {
		name   string
		x      []float32
		labels []int32
		o      ProbeOptions
		want   string
	}{
		{"one class", x, []int32{0, 0}, ProbeOptions{Classes: 1}, "at least 2 classes"},
		{"no label", x, nil, ProbeOptions{Classes: 2}, "for every label"},
		{"ragged", x[:3], []int32{0, 1}, ProbeOptions{Classes: 2}, "of equal width"},
		{"label out of range", x, []int32{0, 2}, ProbeOptions{Classes: 2}, "label 1"},
		{"unknown label", x, []int32{-1, 0}, ProbeOptions{Classes: 2}, "label 0"},
		{"not finite", []float32{1, 2, float32(math.NaN()), 4}, []int32{0, 1}, ProbeOptions{Classes: 2}, "feature 0 of row 1"},
		{"negative decay", x, []int32{0, 1}, ProbeOptions{Classes: 2, Decay: -1}, "must be >= 0"},
	} {
		if _, err := FitProbe(t.Context(), e, c.x, c.labels, c.o); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	p := check.Get(FitProbe(t.Context(), e, x, []int32{0, 1}, ProbeOptions{Classes: 2}))(t)
	if _, err := p.Predict(x, 3); err == nil {
		t.Error("features of another width pass")
	}
	if _, err := NearestNeighbours(t.Context(), e, x, []int32{0, 1}, 2, x, 2, 0); err == nil {
		t.Error("0 neighbours pass")
	}
}

// TestProbeOfAnySize: features tell the same in any unit, also where they are small beside 1.
func TestProbeOfAnySize(t *testing.T) {
	e, r := probeEngine(t), rand.New(rand.NewPCG(6, 2))
	x, labels := blobs(r, 90, 8, 3, .3)
	for _, unit := range []float32{1, 0x1p-27, 0x1p-80, 0x1p80} {
		scaled := make([]float32, len(x))
		for i, v := range x {
			scaled[i] = (v - 40) * unit
		}
		p := check.Get(FitProbe(t.Context(), e, scaled, labels, ProbeOptions{Classes: 3, Decay: 1e-3}))(t)
		got, err := p.Predict(scaled, len(labels))
		if err != nil || Accuracy(got, labels) != 100 {
			t.Errorf("features of size %g: %.1f %% right, %v", unit, Accuracy(got, labels), err)
		}
		// The cosines of the row to classify are 0.995 and 0.778, its products 1 and 3.3.
		near := []float32{unit, 0, 3 * unit, 3 * unit}
		if got, err := NearestNeighbours(t.Context(), e, near, []int32{0, 1}, 2, []float32{unit, unit / 10}, 1,
			1); err != nil || got[0] != 0 {
			t.Errorf("neighbours of size %g: class %v, %v", unit, got, err)
		}
	}
}

// TestProbeOfConstantFeatures has nothing to go by but the frequencies.
func TestProbeOfConstantFeatures(t *testing.T) {
	p := check.Get(FitProbe(t.Context(), probeEngine(t), []float32{5, 5, 5, 5, 5, 5}, []int32{1, 1, 0},
		ProbeOptions{Classes: 2}))(t)
	got, err := p.Predict([]float32{5, 5, 9, 9}, 2)
	if err != nil || !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("%v %v", got, err)
	}
	if Commonest([]int32{1, 1, 0}, 3) != 1 {
		t.Error("the commonest class")
	}
}

// TestProbeOfCollapsedFeatures: classes of one size leave nothing to fit where features do not vary, and that is no
// failure.
func TestProbeOfCollapsedFeatures(t *testing.T) {
	e := probeEngine(t)
	for _, n := range []int{4, 12, 30, 48} { // whose losses round to either side of log 2
		x, labels := slices.Repeat([]float32{1, 5}, n), slices.Repeat([]int32{0, 1}, n/2)
		p, err := FitProbe(t.Context(), e, x, labels, ProbeOptions{Classes: 2, Decay: 0.1})
		if err != nil {
			t.Errorf("%d rows: %v", n, err)
			continue
		}
		if got, err := p.Predict(x, n); err != nil || Accuracy(got, labels) != 50 {
			t.Errorf("%d rows: %v, %v", n, got, err)
		}
	}
}
