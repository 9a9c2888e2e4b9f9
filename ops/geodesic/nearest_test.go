package geodesic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// nearestCentres returns the index and the angle of rows x (n, 2) among centres.
func nearestCentres(t *testing.T, x, centres []float32, width, count int, local local) (index []int32, angle []float32) {
	t.Helper()
	in := []optest.Input{optest.In("x", []int{len(x) / width, width}, x), optest.In("centres", []int{len(centres) / width, width}, centres), optest.I32s("count", []int32{int32(count)})}
	g, ns := optest.Nodes(in)
	i, a := NearestCentre(ns[0], ns[1], ns[2], local.Space)
	m := optest.Machine(t, g, ns, in, i, a)
	check.OK(t, m.RunAll())
	value := func(n *gorgonia.Node) exec.Array {
		return check.Get(m.Value(n))(t)
	}
	return slices.Clone(value(i).I32), slices.Clone(value(a).F32)
}

func TestNearestCentre(t *testing.T) {
	const h = math.Sqrt2 / 2
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	centres := []float32{1, 0, 0, 1, 1, 0, -1, 0} // the third is the first again
	small := math.Acos(1 - 1e-6)                  // of the limited cosine
	for _, c := range []struct {
		name  string
		x     []float32
		count int
		index int32
		angle float64
	}{
		{"a centre itself", []float32{0, 1}, 4, 1, small},
		{"a tie goes to the first", []float32{1, 0}, 4, 0, small},
		{"half way", []float32{h, -h}, 4, 0, math.Pi / 4},
		{"the opposite of the only one", []float32{-1, 0}, 1, 0, math.Pi - small},
		{"the last in use", []float32{-1, 0}, 4, 3, small},
		{"one that is not in use", []float32{-1, 0}, 3, 1, math.Pi / 2},
		{"no centres", []float32{-1, 0}, 0, 0, 0},
		{"no number", []float32{nan, 0}, 4, 0, math.NaN()},
		{"infinite", []float32{0, inf}, 4, 1, math.NaN()},
	} {
		index, angle := nearestCentres(t, c.x, centres, 2, c.count, local{})
		if got := float64(angle[0]); index[0] != c.index && !math.IsNaN(c.angle) || !(math.Abs(got-c.angle) < 1e-5 || math.IsNaN(got) && math.IsNaN(c.angle)) {
			t.Errorf("%s: got centre %d at %v, want %d at %v", c.name, index[0], got, c.index, c.angle)
		}
	}
}

func TestNearestCentreFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	for range 50 {
		k := randomGeoCase(r)
		index, angle := nearestCentres(t, k.queue, k.centres, k.width, k.count, local{})
		for j := range k.n {
			at, want := k.oracle().nearest(widen(k.queue[j*k.width : (j+1)*k.width]))
			if int(index[j]) != at || !(math.Abs(float64(angle[j])-want) <= 1e-5) {
				t.Fatalf("row %d of %+v: got centre %d at %v, want %d at %v", j, k, index[j], angle[j], at, want)
			}
		}
	}
}

// centreDistances is a build function for inputs x, centres, paths and count.
func centreDistances(entries int, softness float32) func(ns gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		return CentreDistances(EntryArgs{X: ns[0], Centres: ns[1], Paths: ns[2], Count: ns[3], Entries: entries, Softness: softness})
	}
}

func TestCentreDistancesFuzz(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 2))
	for range 100 {
		k := randomGeoCase(r)
		in := []optest.Input{optest.In("x", []int{k.b, k.width}, k.f), optest.In("centres", []int{k.k, k.width}, k.centres), optest.In("paths", []int{k.k, k.k}, k.paths), optest.I32s("count", []int32{int32(k.count)})}
		got := optest.Eval(t, centreDistances(k.entries, k.softness), in...).F32
		o := k.oracle()
		for i := range k.b {
			for j := range k.k {
				want := math.Inf(1)
				if j < k.count {
					want = o.distance(o.f[i*k.width:(i+1)*k.width], j)
				}
				if v := float64(got[i*k.k+j]); v != want && !(math.Abs(v-want) <= 2e-5) {
					t.Fatalf("distance of row %d and centre %d of %+v: got %v, want %v", i, j, k, v, want)
				}
			}
		}
	}
}

// TestCentreDistancesVector by hand: four centres in a line, .5 from one to the
// next, and one alone; a row on the first.
func TestCentreDistancesVector(t *testing.T) {
	const c1, s1 = 0.8775825618903728, 0.479425538604203 // cos and sin of .5
	const c2, s2 = 0.5403023058681398, 0.8414709848078965
	const c3, s3 = 0.0707372016677029, 0.9974949866040544
	inf := float32(math.Inf(1))
	in := []optest.Input{
		optest.In("x", []int{1, 3}, []float32{1, 0, 0}),
		optest.In("centres", []int{5, 3}, []float32{1, 0, 0, c1, s1, 0, c2, s2, 0, c3, s3, 0, 0, 0, 1}),
		optest.In("paths", []int{5, 5}, []float32{0, .5, 1, 1.5, inf, .5, 0, .5, 1, inf, 1, .5, 0, .5, inf, 1.5, 1, .5, 0, inf, inf, inf, inf, inf, 0}),
		optest.I32s("count", []int32{5}),
	}
	small := float32(math.Acos(1 - 1e-6))
	got := optest.Eval(t, centreDistances(1, 0), in...).F32
	optest.Near(t, "distances", got[:4], []float32{small, .5 + small, 1 + small, 1.5 + small}, 1e-5)
	if got[4] != inf {
		t.Errorf("the centre alone is at %v", got[4])
	}
	// Two entries, temperature .1, to the last of the line: small+1.5 and .5+1.
	got = optest.Eval(t, centreDistances(2, .1), in...).F32
	optest.Near(t, "soft distance", got[3:4], []float32{float32(-.1 * math.Log(math.Exp(-(1.5+float64(small))/.1)+math.Exp(-1.5/.1)))}, 1e-5)
}

// TestCentreDistancesWithoutPaths wants no gradient from infinite distances, whatever
// gradient comes to them.
func TestCentreDistancesWithoutPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 3))
	inf := float32(math.Inf(1))
	for _, entries := range []int{1, 2, 3} {
		x, centres := optest.UnitRows(r, 1, 4), optest.UnitRows(r, 3, 4)
		in := []optest.Input{optest.In("x", []int{1, 4}, x), optest.In("centres", []int{3, 4}, centres),
			optest.In("paths", []int{3, 3}, []float32{inf, inf, inf, inf, inf, inf, inf, inf, inf}), optest.I32s("count", []int32{3}), optest.F32s(r, "dy", 1, 3)}
		g, ns := optest.Nodes(in)
		e := centreDistances(entries, .1)(ns)
		grads := check.Get(gorgonia.Grad(optest.Dot(e, ns[4]), ns[0]))(t)
		m := optest.Machine(t, g, ns, in, e, grads[0])
		check.OK(t, m.RunAll())
		d, _ := m.Value(e)
		dx, _ := m.Value(grads[0])
		if slices.ContainsFunc(d.F32, func(v float32) bool { return v != inf }) || slices.ContainsFunc(dx.F32, func(v float32) bool { return v != 0 }) {
			t.Errorf("%d entries: distances %v, gradient %v", entries, d.F32, dx.F32)
		}
	}
}

func TestCentreErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 4))
	in := []optest.Input{optest.F32s(r, "x", 2, 3), optest.F32s(r, "centres", 4, 3), optest.F32s(r, "paths", 4, 4), optest.I32s("count", []int32{5}), optest.F32s(r, "narrow", 4, 2), optest.F32s(r, "vector", 4)}
	_, ns := optest.Nodes(in)
	x, centres, paths, count, narrow, vector := ns[0], ns[1], ns[2], ns[3], ns[4], ns[5]
	optest.BuildError(t, "nearest width", "want x (R, C) and centres (K, C)", func() { NearestCentre(x, narrow, count, space.Space{}) })
	optest.BuildError(t, "nearest count", "count must be a scalar", func() { NearestCentre(x, centres, vector, space.Space{}) })
	for _, c := range []struct {
		want string
		a    EntryArgs
	}{
		{"want x (R, C) and centres (K, C)", EntryArgs{x, narrow, paths, count, 1, 0, space.Space{}}},
		{"paths must have shape (4, 4)", EntryArgs{x, centres, narrow, count, 1, 0, space.Space{}}},
		{"count must have shape ()", EntryArgs{x, centres, paths, vector, 1, 0, space.Space{}}},
		{"entries must be in [1, 4] (got 0)", EntryArgs{x, centres, paths, count, 0, 1, space.Space{}}},
		{"entries must be in [1, 4] (got 5)", EntryArgs{x, centres, paths, count, 5, 1, space.Space{}}},
		{"softness must be above 0 (got 0)", EntryArgs{x, centres, paths, count, 2, 0, space.Space{}}},
		{"softness must be above 0 (got NaN)", EntryArgs{x, centres, paths, count, 2, float32(math.NaN()), space.Space{}}},
	} {
		optest.BuildError(t, c.want, c.want, func() { CentreDistances(c.a) })
	}
	optest.RunError(t, "count is 5: want [0, 4]", func(ns gorgonia.Nodes) *gorgonia.Node {
		n, _ := NearestCentre(ns[0], ns[1], ns[3], space.Space{})
		return n
	}, in...)
	optest.RunError(t, "count is 5: want [0, 4]", centreDistances(1, 0), in[:4]...)
}
