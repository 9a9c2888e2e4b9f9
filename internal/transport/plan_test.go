package transport

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
)

func engine(t *testing.T, threads int) *compute.Engine {
	t.Helper()
	e := check.Get(compute.New(compute.Options{Threads: threads}))(t)
	t.Cleanup(e.Close)
	return e
}

// plan solves normal similarities of a width.
func plan(t *testing.T, e *compute.Engine, n, m int, width float64, o Options) *Plan {
	t.Helper()
	p := check.Get(New(e, n, m))(t)
	r := rand.New(rand.NewPCG(3, 1))
	for i := range p.S {
		p.S[i] = width * r.NormFloat64()
	}
	check.OK(t, p.Solve(o))
	return p
}

// definition is Sinkhorn's iteration on the potentials in the log domain, and P.
func definition(s []float64, n, m int, eps float64, rounds int) []float64 {
	f, g := make([]float64, n), make([]float64, m)
	soft := func(k int, x func(int) float64) float64 { // eps log sum exp(x/eps)
		top, sum := math.Inf(-1), 0.
		for j := range k {
			top = max(top, x(j))
		}
		for j := range k {
			sum += math.Exp((x(j) - top) / eps)
		}
		return top + eps*math.Log(sum)
	}
	for range rounds {
		for i := range f {
			f[i] = -soft(m, func(j int) float64 { return s[i*m+j] + g[j] }) - eps*math.Log(float64(n))
		}
		for j := range g {
			g[j] = -soft(n, func(i int) float64 { return s[i*m+j] + f[i] }) - eps*math.Log(float64(m))
		}
	}
	out := make([]float64, n*m)
	for i := range out {
		out[i] = math.Exp((s[i] + f[i/m] + g[i%m]) / eps)
	}
	return out
}

// TestSolve compares rounds of scaling with rounds in the log domain, with scales that have
// to go into the potentials on the way.
func TestSolve(t *testing.T) {
	e := engine(t, 2)
	for _, c := range []struct {
		n, m       int
		width, eps float64
		rounds     int
	}{{6, 6, 1, .1, 30}, {5, 9, 1, .3, 1}, {9, 5, 1, .02, 7}, {4, 4, 3, 1e-3, 3000}, {70, 90, .3, .05, 20}, {1, 3, 1, .1, 2}} {
		p := plan(t, e, c.n, c.m, c.width, Options{Epsilon: c.eps, Iterations: c.rounds, Tolerance: 1e-300})
		want := definition(p.S, c.n, c.m, c.eps, c.rounds)
		for i, w := range want {
			log := (p.S[i] + p.F[i/c.m] + p.G[i%c.m]) / c.eps
			if !(math.Abs(p.p[i]-w) <= 1e-9) || !(math.Abs(math.Exp(log)-w) <= 1e-9) {
				t.Fatalf("%+v: mass %d is %v, by the potentials %v, want %v", c, i, p.p[i], math.Exp(log), w)
			}
		}
	}
}

// TestSolveFar: scales that would leave the range of numbers go into the potentials.
func TestSolveFar(t *testing.T) {
	const n, rounds, eps = 20, 3000, 2e-4
	p := plan(t, engine(t, 1), n, n, 1, Options{Epsilon: 1, Iterations: 1})
	for i := range p.S {
		p.S[i] = float64((i/n)*(i%n)) / n // whoever takes the last item is far above all others
	}
	check.OK(t, p.Solve(Options{Epsilon: eps, Iterations: rounds, Tolerance: 1e-300}))
	for i, w := range definition(p.S, n, n, eps, rounds) {
		if !(math.Abs(p.p[i]-w) <= 1e-9) {
			t.Fatalf("mass %d is %v, want %v", i, p.p[i], w)
		}
	}
}

// TestSolveEnds where rows are as wanted, and says how far off they are where it may not go on.
func TestSolveEnds(t *testing.T) {
	e := engine(t, 1)
	if p := plan(t, e, 8, 8, 1, Options{Epsilon: .5}); p.Off >= 1e-6 {
		t.Errorf("rows are off by %v", p.Off)
	}
	p := plan(t, e, 8, 8, 1, Options{Epsilon: .02, Iterations: 3})
	before := plan(t, e, 8, 8, 1, Options{Epsilon: .02, Iterations: 2})
	var off float64
	for i := range 8 {
		var sum float64
		for _, v := range before.p[i*8:][:8] {
			sum += v
		}
		off = max(off, math.Abs(8*sum-1))
	}
	if !(math.Abs(p.Off-off) <= 1e-9) || off < 1e-3 {
		t.Errorf("off by %v, want %v", p.Off, off)
	}
}

// TestSolveAgain: a plan that is solved again begins anew, allocates nothing, and has the same
// bits with any number of threads.
func TestSolveAgain(t *testing.T) {
	o := Options{Epsilon: .05, Iterations: 20}
	want := plan(t, engine(t, 1), 120, 150, .5, o)
	p := plan(t, engine(t, 3), 120, 150, .5, o)
	target, grad := make([]float64, len(p.S)), make([]float64, len(p.S))
	for i := range target {
		target[i] = 1 / float64(len(target))
	}
	if n := allocs.PerRun(5, func() {
		check.OK(t, p.Solve(o))
		check.Get(p.KL(target, grad))(t)
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
	for i, v := range want.p {
		if p.p[i] != v {
			t.Fatalf("mass %d is %v, the first time %v", i, p.p[i], v)
		}
	}
}

func TestErrors(t *testing.T) {
	e := engine(t, 1)
	p := plan(t, e, 2, 2, 1, Options{Epsilon: 1})
	_, size := New(e, 0, 2)
	_, short := p.KL(make([]float64, 3), make([]float64, 4))
	for want, err := range map[string]error{
		"items on both sides (got 0": size, "want 2 x 2": short,
		"eps > 0": p.Solve(Options{}), "iterations": p.Solve(Options{Epsilon: 1, Iterations: -1}), "tolerance": p.Solve(Options{Epsilon: 1, Tolerance: -1}),
	} {
		check.Error(t, err, want)
	}
	p.S[1] = math.NaN()
	if err := p.Solve(Options{Epsilon: 1}); err != nil || p.p[0] == p.p[0] {
		t.Errorf("similarities that are not finite give %v (%v)", p.p, err)
	}
}
