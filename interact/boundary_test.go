package interact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// momentsOf are those of values.
func momentsOf(values ...float64) (m Moments) {
	for _, v := range values {
		m.N, m.Sum, m.Squares = m.N+1, m.Sum+v, m.Squares+v*v
	}
	return m
}

// spread are n values in pairs around a mean, with a standard deviation.
func spread(n int, mean, deviation float64) Moments {
	values := make([]float64, n)
	for i := range values {
		values[i] = mean + deviation*math.Sqrt(float64(n-1)/float64(n))*float64(1-2*(i%2))
	}
	return momentsOf(values...)
}

// TestCrossing: the density of matched words there is that of mismatched words times the penalty,
// and where the cost of both mistakes is the least.
func TestCrossing(t *testing.T) {
	r := rand.New(rand.NewPCG(73, 1))
	density := func(x, mean, deviation float64) float64 {
		z := (x - mean) / deviation
		return math.Exp(-z*z/2) / deviation
	}
	below := func(x, mean, deviation float64) float64 { return math.Erfc((mean-x)/deviation/math.Sqrt2) / 2 }
	for range 200 {
		m, d := .1+.2*r.Float64(), .05+.1*r.Float64()
		mean, deviation, penalty := m+.2+.3*r.Float64(), .05+.1*r.Float64(), 1+2*r.Float64()
		if r.IntN(4) == 0 {
			deviation = d
		}
		x, ok := crossing(mean, deviation, penalty, spread(400, m, d))
		if !ok {
			t.Fatalf("%v %v %v %v: no point", mean, deviation, m, d)
		}
		if a, b := density(x, mean, deviation), penalty*density(x, m, d); !(math.Abs(a-b) < 1e-6*max(a, 1)) {
			t.Errorf("densities %v and %v at %v", a, b, x)
		}
		cost := func(x float64) float64 { return penalty*(1-below(x, m, d)) + below(x, mean, deviation) }
		for _, h := range []float64{-.01, .01} {
			if cost(x+h) < cost(x) {
				t.Errorf("means %v and %v, deviations %v and %v: boundary %v costs %v, %v costs %v", mean, m, deviation, d, x, cost(x), x+h, cost(x+h))
			}
		}
	}
	if x, ok := crossing(.5, .1, 1, Moments{256, 64, 16}); ok {
		t.Errorf("mismatched words that are all alike: %v", x)
	}
	if x, ok := crossing(.2, .1, 1e6, spread(400, .2, .11)); ok {
		t.Errorf("densities that never meet: %v", x)
	}
}

// TestBoundary: 0.7 of the new boundary and 0.3 of the old one, after more than 200 words; outside
// [0, 1] it is 0.
func TestBoundary(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           Samples
		t, safe     float64
		want, safe2 float64
	}{
		{"too few", Samples{spread(200, .6, .1), spread(200, .2, .1)}, .3, .1, .3, .1},
		// Equal deviations: the middle, and no penalty.
		{"the middle", Samples{spread(202, .6, .1), spread(202, .2, .1)}, .3, .1, .7*.4 + .3*.3, .7*.3 + .3*.1},
		{"below 0", Samples{spread(202, .3, .2), spread(202, -.9, .2)}, .5, .5, .3 * .5, .3 * .5},
		{"no point", Samples{Moments{256, 64, 16}, spread(202, .2, .1)}, .5, .4, .5, .4},
	} {
		got, safe := c.s.Boundary(c.t, c.safe, 1)
		if !(math.Abs(got-c.want) < 1e-9 && math.Abs(safe-c.safe2) < 1e-9) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, got, safe, c.want, c.safe2)
		}
	}
	var s Samples
	s.Add([]float32{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60})
	if want := (Samples{Moments{11, 22, 33}, Moments{44, 55, 66}}); s != want {
		t.Errorf("samples of two processes: %v, want %v", s, want)
	}
}
