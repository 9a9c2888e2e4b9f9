package geometric

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func close64(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Errorf("%s[%d]: got %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestVector was worked by hand.
func TestVector(t *testing.T) {
	o := Options{Kernel: Heat, Epsilon: .8, Scale: None}
	before, after := []float32{0, 0, 1, 0, 0, 2}, []float32{0, 0, 1, 0, 0, 1}
	want := []float64{.49551, .36252, .14197, .37688, .51514, .10798, .19150, .14010, .66840}
	close64(t, "W", o.weights(before, 3), want, 5e-6)
	close64(t, "loss", []float64{o.loss(before, after, 3)}, []float64{.139270}, 5e-7)
	close64(t, "loss of nothing", []float64{o.loss(before, before, 3)}, []float64{0}, 0)
}

// TestKernels has three points of a line, 0, 1 and 3: d2 is 1, 9 and 4. Rows by hand.
func TestKernels(t *testing.T) {
	line := []float32{0, 1, 3}
	for _, c := range []struct {
		kernel, scale string
		want          []float64
	}{
		{Linear, None, []float64{0, .25, .75, 1. / 3, 0, 2. / 3, .6, .4, 0}},
		{Linear, Relative, []float64{0, .25, .75, 1. / 3, 0, 2. / 3, .6, .4, 0}},
		{Squared, None, []float64{0, .1, .9, .2, 0, .8, 9. / 13, 4. / 13, 0}},
		// 1, 1/2, 1/10 / 1.6; 1/2, 1, 1/5 / 1.7; 1/10, 1/5, 1 / 1.3
		{Inverse, None, []float64{.625, .3125, .0625, 5. / 17, 10. / 17, 2. / 17, 1. / 13, 2. / 13, 10. / 13}},
	} {
		o := Options{Kernel: c.kernel, Scale: c.scale}
		if err := o.Check(); err != nil {
			t.Error(err)
		}
		close64(t, c.kernel+" "+c.scale, o.weights(line, 3), c.want, 1e-12)
	}
	// The mean of 1, 9 and 4 is 14/3.
	close64(t, "relative", distances(line, 3, Relative), []float64{0, 3. / 14, 27. / 14, 3. / 14, 0, 12. / 14, 27. / 14, 12. / 14, 0}, 1e-12)
	// Unit vectors at 0, 90 and 180 degrees.
	close64(t, "unit", distances([]float32{5, 0, 0, .1, -3, 0}, 3, Unit), []float64{0, 2, 4, 2, 0, 2, 4, 2, 0}, 1e-12)
}

func TestCoincidentPoints(t *testing.T) {
	for _, kernel := range []string{Heat, Linear, Squared, Inverse} {
		for _, scale := range []string{Unit, Relative, None} {
			o := Options{Kernel: kernel, Epsilon: 1, Scale: scale}
			w := o.weights([]float32{.1, .2, .1, .2, .1, .2}, 3)
			want := 1. / 3
			if kernel == Linear || kernel == Squared {
				want = 0
			}
			for _, v := range w {
				if !(math.Abs(v-want) <= 1e-12) {
					t.Errorf("%s %s: got %v, want %v", kernel, scale, w, want)
					break
				}
			}
		}
	}
	o := Options{Kernel: Heat, Epsilon: 1, Scale: Unit}
	if w := o.weights([]float32{0, 0, 0, 1}, 2); math.IsNaN(w[0]) || math.IsNaN(w[3]) {
		t.Errorf("a point 0 gives %v", w)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Kernel: "gauss", Scale: Unit}, "kernel"},
		{Options{Kernel: Linear, Scale: "norm"}, "scale"},
		{Options{Kernel: Heat, Scale: Unit}, "epsilon"},
		{Options{Kernel: Heat, Epsilon: float32(math.NaN()), Scale: Unit}, "epsilon"},
		{Options{Kernel: Heat, Epsilon: float32(math.Inf(1)), Scale: Unit}, "epsilon"},
	} {
		if err := c.o.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want an error about %s", c.o, err, c.want)
		}
	}
	if CheckSampling("nearest") == nil || CheckSampling(Biased) != nil {
		t.Error("CheckSampling is wrong about nearest or biased")
	}
}

func TestSample(t *testing.T) {
	noise := []float32{.1, .9, .5, .8, .2}
	if got := sample(Closest, noise, 2); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("closest: got %v", got)
	}
	if got := sample(Uniform, noise, 2); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("uniform: got %v", got)
	}
	// Keys -log(1+rank) - log(-log u): -.834, 1.557, -.732, .114, -2.085.
	if got := sample(Biased, noise, 3); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("biased: got %v", got)
	}
}

// TestBiasedLaw draws one of four: rank r comes with probability 1/(1+r) / (25/12).
func TestBiasedLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const draws = 40000
	var seen [4]float64
	noise := make([]float32, 4)
	for range draws {
		for i := range noise {
			noise[i] = r.Float32()
		}
		seen[sample(Biased, noise, 1)[0]]++
	}
	for rank, n := range seen {
		if want := 12. / 25 / float64(1+rank); !(math.Abs(n/draws-want) <= .01) {
			t.Errorf("rank %d: got share %v, want %v", rank, n/draws, want)
		}
	}
}
