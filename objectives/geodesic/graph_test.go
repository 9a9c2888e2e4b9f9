package geodesic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Every distance equals the oracle's on random pools, for all shapes of layers and both
// constructions, before and after thousands of inserts.
func TestDistances(t *testing.T) {
	const n, c = 600, 12
	e := engine(t, 2)
	for _, split := range []bool{false, true} {
		for _, layers := range [][]int{{48}, {6, 48}, {7, 45}, {3, 12, 48}, {2, 5, 11, 40}, {1, 20}} {
			for _, neighbours := range []int{1, 3, 8, 100} {
				for _, direct := range []bool{false, true} {
					name := fmt.Sprintf("split=%t/layers=%v/neighbours=%d/direct=%t", split, layers, neighbours, direct)
					t.Run(name, func(t *testing.T) {
						r := rand.New(rand.NewPCG(uint64(neighbours), uint64(len(layers))))
						x := mixture(n, c, 30, .7, r)
						g, _ := build(t, e, x, n, c, Options{Layers: layers, Split: split, Neighbours: neighbours, DirectLegs: direct}, 3)
						checkDistances(t, g, x, 1e-5, r)
						if neighbours == 3 {
							g.churn(t, x, 4000, r)
							checkDistances(t, g, x, 1e-5, r)
						}
					})
				}
			}
		}
	}
}

// churn overwrites the ring with count new points, in blocks of several sizes.
func (g *Graph) churn(t *testing.T, x []float32, count int, r *rand.Rand) {
	t.Helper()
	e, c := engine(t, 2), g.channels
	owner, reach := make([]int32, 100), make([]float32, 100)
	for at := 17; count > 0; {
		n := 1 + r.IntN(100)
		y := g.options.mixture(n, c, 50, .9, r)
		g.Attach(e, y, owner[:n], reach[:n])
		g.Insert(at, owner[:n], reach[:n])
		for j := range n {
			copy(x[(at+j)%g.points*c:], y[j*c:(j+1)*c])
		}
		at, count = (at+n)%g.points, count-n
	}
}

// checkDistances compares owners, reaches, paths, and distances of pairs with the oracle, to
// the given tolerance in radians.
func checkDistances(t *testing.T, g *Graph, x []float32, tolerance float64, r *rand.Rand) {
	t.Helper()
	o, c, n := newOracle(g), g.channels, g.points
	bottom := o.layers[len(o.layers)-1].centres
	row := func(j int) []float64 { return wide(x[j*c : (j+1)*c]) }
	for j := range n {
		own := o.likeness(row(j), bottom[g.Owner[j]])
		for k, y := range bottom {
			if o.likeness(row(j), y) > own+max(1e-6, o.tie(own, row(j))) {
				t.Fatalf("point %d hangs on centre %d, but %d is nearer", j, g.Owner[j], k)
			}
		}
		if want := o.trivial(row(j), bottom[g.Owner[j]]); !within(g.Reach[j], want, tolerance) {
			t.Fatalf("reach of %d is %v, want %v", j, g.Reach[j], want)
		}
	}
	width := len(g.bottom().Parent)
	cached := make([]float32, 2*width)
	for range 400 {
		i, j := r.IntN(n), r.IntN(n-1)
		want := 0.
		if o.doubt = false; i != j {
			want = o.between(row(i), int(g.Owner[i]), row(j), int(g.Owner[j]))
		}
		if got := g.Between(i, j); !within(got, want, tolerance) && !o.doubt {
			t.Fatalf("Between(%d, %d) is %v, want %v", i, j, got, want)
		}
		g.Cached(cached, j, j+2)
		for range 3 {
			k := r.IntN(g.Used)
			// The distance to a bottom centre is that to a point there, less its own leg.
			want := o.between(row(j), int(g.Owner[j]), bottom[k], k) - o.trivial(bottom[k], bottom[k])
			if got := cached[k]; !within(got, want, tolerance) && !o.doubt {
				t.Fatalf("Cached[%d][%d] is %v, want %v", j, k, got, want)
			}
		}
	}
	y := g.options.mixture(5, c, 5, 1, r)
	dst := make([]float32, 5*n)
	g.From(engine(t, 2), y, dst)
	for i := range 5 {
		p := wide(y[i*c : (i+1)*c])
		own := 0
		for k := range bottom {
			if o.likeness(p, bottom[k]) > o.likeness(p, bottom[own]) {
				own = k
			}
		}
		for range 100 {
			j := r.IntN(n)
			if got, want := dst[i*n+j], o.between(p, own, row(j), int(g.Owner[j])); !within(got, want, tolerance) && !o.doubt {
				t.Fatalf("From[%d][%d] is %v, want %v", i, j, got, want)
			}
		}
	}
	for i := range width {
		for j := range width {
			a, b := g.Paths[i*width+j], g.Paths[j*width+i]
			if a != b || i == j && a != 0 || (i >= g.Used || j >= g.Used) && i != j && !math.IsInf(float64(a), 1) {
				t.Fatalf("Paths[%d][%d] is %v, its mirror %v", i, j, a, b)
			}
		}
	}
}

// Children are adjacent and in the order of their parents, and every parent has some.
func TestLayersAreSorted(t *testing.T) {
	const n, c = 500, 10
	e := engine(t, 1)
	for _, split := range []bool{false, true} {
		x := mixture(n, c, 25, .5, rand.New(rand.NewPCG(9, 9)))
		g, s := build(t, e, x, n, c, Options{Layers: []int{4, 13, 50}, Split: split}, 1)
		for i, l := range g.Layers {
			if l.Used < 1 || l.Used > len(l.Parent) || s.Layers[i].Centres != l.Used {
				t.Fatalf("layer %d has %d centres of %d", i, l.Used, len(l.Parent))
			}
			if !slices.IsSorted(l.Parent[:l.Used]) {
				t.Fatalf("layer %d: parents %v", i, l.Parent)
			}
			if i == 0 {
				continue
			}
			if got := len(slices.Compact(slices.Clone(l.Parent[:l.Used]))); got != g.Layers[i-1].Used || s.Layers[i].Graphs != got {
				t.Fatalf("layer %d hangs on %d parents of %d", i, got, g.Layers[i-1].Used)
			}
			// A group hangs on its nearest centre; a cluster of a cluster need not.
			for j := range l.Used {
				y, own := l.Centres[j*c:(j+1)*c], 0.
				best := -1.
				for k := range g.Layers[i-1].Used {
					d := dot(wide(y), wide(g.Layers[i-1].Centres[k*c:(k+1)*c]))
					if k == int(l.Parent[j]) {
						own = d
					}
					best = max(best, d)
				}
				if !split && own < best-1e-6 {
					t.Fatalf("layer %d: centre %d is not in its nearest group", i, j)
				}
			}
		}
	}
}

func TestBetweenDirect(t *testing.T) {
	const n, c = 300, 8
	e := engine(t, 1)
	x := mixture(n, c, 10, .5, rand.New(rand.NewPCG(4, 4)))
	g, _ := build(t, e, x, n, c, Options{Layers: []int{3, 12}}, 1)
	shared := 0
	for i := range n {
		for j := range n {
			got := g.BetweenDirect(x, i, j)
			want := g.Between(i, j)
			if i != j && g.Owner[i] == g.Owner[j] {
				shared++
				want = float32(trivial(wide(x[i*c:(i+1)*c]), wide(x[j*c:(j+1)*c])))
				// The direct angle is never longer than the way by the centre.
				if float64(got) > float64(g.Between(i, j))+1e-5 {
					t.Fatalf("direct %v is longer than %v by way of the centre", got, g.Between(i, j))
				}
			}
			if !near(got, float64(want)) {
				t.Fatalf("BetweenDirect(%d, %d) is %v, want %v", i, j, got, want)
			}
		}
	}
	if shared == 0 {
		t.Fatal("no pair shares a cluster")
	}
}

// The same bits come out for the same input and seed, whatever the number of threads, and
// whatever the graph held before.
func TestDeterminism(t *testing.T) {
	const n, c = 3000, 33
	x := mixture(n, c, 60, .7, rand.New(rand.NewPCG(5, 5)))
	other := mixture(n, c, 9, .3, rand.New(rand.NewPCG(6, 6)))
	for _, o := range []Options{{Layers: []int{100}}, {Layers: []int{10, 100}}, {Layers: []int{4, 12, 100}, Split: true}, {Layers: []int{150}, Init: InitRows}} {
		want, _ := build(t, engine(t, 1), x, n, c, o, 2)
		k := o.Layers[len(o.Layers)-1]
		for i := range k {
			for j := range i {
				if want.Paths[i*k+j] != want.Paths[j*k+i] {
					t.Fatalf("%+v: paths between %d and %d differ by direction", o, i, j)
				}
			}
		}
		for _, threads := range []int{1, 2, 3} {
			got, _ := build(t, engine(t, threads), other, n, c, o, 8)
			check.Get(got.Build(engine(t, threads), x, rand.New(rand.NewPCG(2, 7))))(t)
			equal(t, got, want)
		}
	}
}

// equal compares the bits of two graphs.
func equal(t *testing.T, got, want *Graph) {
	t.Helper()
	if got.Used != want.Used || !slices.Equal(got.Owner, want.Owner) || !slices.Equal(got.Reach, want.Reach) || !slices.Equal(got.Paths, want.Paths) {
		t.Fatal("graphs differ")
	}
	for i, l := range got.Layers {
		w := want.Layers[i]
		if l.Used != w.Used || !slices.Equal(l.Centres, w.Centres) || !slices.Equal(l.Parent[:l.Used], w.Parent[:l.Used]) {
			t.Fatalf("layers %d differ", i)
		}
	}
	a, b := got.Stats(), want.Stats()
	a.Seconds, b.Seconds = 0, 0
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("figures differ:\n%+v\n%+v", a, b)
	}
}

// A copy is the graph, keeps its own memory, and is where a warm start begins.
func TestCopyAndRelink(t *testing.T) {
	const n, c = 800, 16
	e := engine(t, 2)
	x := mixture(n, c, 20, .6, rand.New(rand.NewPCG(7, 7)))
	for _, o := range []Options{{Layers: []int{5, 40}, WarmStart: true}, {Layers: []int{3, 9, 40}, Split: true, WarmStart: true}, {Layers: []int{30}, Split: true, WarmStart: true}} {
		a, _ := build(t, e, x, n, c, o, 1)
		b := check.Get(New(n, c, o))(t)
		centres, paths := &b.Centres[0], &b.Paths[0]
		b.CopyFrom(a)
		equal(t, b, a)
		// Relink makes the rest from centres and parents.
		d, _ := New(n, c, o)
		for i, l := range d.Layers {
			copy(l.Centres, a.Layers[i].Centres)
			copy(l.Parent, a.Layers[i].Parent)
			l.Used = a.Layers[i].Used
		}
		copy(d.Owner, a.Owner)
		copy(d.Reach, a.Reach)
		d.Relink(e)
		d.objective = a.objective
		equal(t, d, a)
		for _, g := range []*Graph{a, b, d} {
			check.Get(g.Build(e, x, rand.New(rand.NewPCG(3, 3))))(t)
		}
		equal(t, b, a)
		equal(t, d, a)
		if &b.Centres[0] != centres || &b.Paths[0] != paths {
			t.Fatal("a build has moved the graph's memory")
		}
	}
}

func TestInsertWraps(t *testing.T) {
	g := check.Get(New(5, 2, Options{Layers: []int{2}}))(t)
	g.Insert(3, []int32{1, 2, 3}, []float32{.1, .2, .3})
	if !slices.Equal(g.Owner, []int32{3, 0, 0, 1, 2}) || !slices.Equal(g.Reach, []float32{.3, 0, 0, .1, .2}) {
		t.Fatalf("got %v %v", g.Owner, g.Reach)
	}
	for _, at := range []int{-1, 5} {
		mustPanic(t, func() { g.Insert(at, []int32{1}, []float32{1}) })
	}
	mustPanic(t, func() { g.Insert(0, make([]int32, 6), make([]float32, 6)) })
	mustPanic(t, func() { g.Insert(0, make([]int32, 2), make([]float32, 1)) })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	f()
}

func TestAttachBeforeBuild(t *testing.T) {
	g, _ := New(10, 4, Options{Layers: []int{2}})
	owner, reach := []int32{7}, []float32{7}
	g.Attach(engine(t, 1), make([]float32, 4), owner, reach)
	if owner[0] != 0 || reach[0] != 0 || len(g.Stats().Layers) != 0 {
		t.Fatalf("got %v %v", owner, reach)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, c := range []struct {
		points, channels int
		o                Options
		want             string
	}{
		{0, 4, Options{Layers: []int{1}}, "points and channels must be above 0 (got 0 points of 4 channels)"},
		{9, 0, Options{Layers: []int{1}}, "points and channels"},
		{9, 4, Options{}, "layers must name at least the number of bottom centres"},
		{9, 4, Options{Layers: []int{0, 4}}, "layers must hold numbers above 0 (got [0 4])"},
		{9, 4, Options{Layers: []int{4, 4}}, "layers must grow from the top to the bottom (got [4 4])"},
		{9, 4, Options{Layers: []int{5, 4}}, "layers must grow"},
		{9, 4, Options{Layers: []int{2, 10}}, "layers must not end in more clusters than there are points (got 10 clusters of 9 points)"},
		{9, 4, Options{Layers: []int{2}, Neighbours: -1}, "neighbours must be above 0 (got -1)"},
		{9, 4, Options{Layers: []int{2}, Iterations: -1}, "iterations must be above 0 (got -1)"},
		{9, 4, Options{Layers: []int{2}, Init: "random"}, `init must be "plusplus" or "rows" (got "random")`},
		{9, 4, Options{Layers: []int{2}, Limit: -1}, "limit must be above 0 radians (got -1)"},
		{9, 4, Options{Layers: []int{2}, Limit: float32(math.NaN())}, "limit must be above 0"},
	} {
		_, err := New(c.points, c.channels, c.o)
		if err == nil || !strings.HasPrefix(err.Error(), "geodesic: "+c.want) {
			t.Errorf("New(%d, %d, %+v): %v, want %q", c.points, c.channels, c.o, err, c.want)
		}
	}
}

// A bad row is named, and the graph before stays.
func TestBadRows(t *testing.T) {
	const n, c = 200, 6
	e := engine(t, 2)
	good := mixture(n, c, 5, .5, rand.New(rand.NewPCG(1, 1)))
	g, _ := build(t, e, good, n, c, Options{Layers: []int{8}}, 1)
	want, _ := build(t, e, good, n, c, Options{Layers: []int{8}}, 1)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, b := range []struct {
		row  int
		set  []float32
		want string
	}{
		{0, make([]float32, c), "geodesic: row 0 is zero: fill every row"},
		{150, []float32{nan, 0, 0, 0, 0, 0}, "geodesic: row 150 is not finite"},
		{199, []float32{0, inf, 0, 0, 0, 0}, "geodesic: row 199 is not finite"},
		{20, []float32{0, 2, 0, 0, 0, 0}, "geodesic: row 20 has length 2: divide rows by their length"},
	} {
		x := slices.Clone(good)
		copy(x[b.row*c:], b.set)
		copy(x[199*c:], make([]float32, c)) // the first is named
		copy(x[b.row*c:], b.set)
		_, err := g.Build(e, x, rand.New(rand.NewPCG(2, 2)))
		if err == nil || !strings.HasPrefix(err.Error(), b.want) {
			t.Errorf("got %v, want %q", err, b.want)
		}
		equal(t, g, want)
	}
	if _, err := g.Build(e, good[:c], nil); err == nil || err.Error() != "geodesic: points must hold 200 x 6 values (got 6)" {
		t.Errorf("got %v", err)
	}
}

// Points that coincide share a centre: there are as many centres as distinct points.
func TestDuplicates(t *testing.T) {
	const n, c, distinct = 400, 5, 7
	e := engine(t, 2)
	rows := mixture(distinct, c, distinct, .1, rand.New(rand.NewPCG(3, 3)))
	x := make([]float32, n*c)
	for j := range n {
		copy(x[j*c:], rows[j%distinct*c:][:c])
	}
	for _, o := range []Options{
		{Layers: []int{7}}, {Layers: []int{30}}, {Layers: []int{30}, Init: InitRows}, {Layers: []int{4, 30}}, {Layers: []int{3, 9, 30}},
		{Layers: []int{30}, Split: true}, {Layers: []int{4, 30}, Split: true}, {Layers: []int{2, 9, 30}, Split: true, Init: InitRows}, {Layers: []int{4, 30}, WarmStart: true},
	} {
		g, s := build(t, e, x, n, c, o, 1)
		for range 2 {
			if g.Used != distinct || s.Empty != 0 {
				t.Fatalf("%+v: %d centres in use, %d of them empty", o, g.Used, s.Empty)
			}
			for j := range n {
				if g.Owner[j] != g.Owner[j%distinct] || g.Reach[j] > .002 {
					t.Fatalf("%+v: point %d: owner %d, reach %v", o, j, g.Owner[j], g.Reach[j])
				}
			}
			checkDistances(t, g, x, 1e-5, rand.New(rand.NewPCG(1, 1)))
			s = check.Get(g.Build(e, x, rand.New(rand.NewPCG(4, 4))))(t)
		}
	}
	// One point alone.
	for j := range n {
		copy(x[j*c:], rows[:c])
	}
	g, s := build(t, e, x, n, c, Options{Layers: []int{2, 8}}, 1)
	if g.Used != 1 || g.Between(0, 1) > .004 || s.Entropy != 0 || s.Unreached != 0 {
		t.Fatalf("got %d centres, %+v", g.Used, s)
	}
}

// A rebuild makes no garbage but its figures, and attaching none at all.
func TestAllocations(t *testing.T) {
	const n, c = 2000, 16
	e := engine(t, 2)
	x := mixture(n, c, 20, .6, rand.New(rand.NewPCG(7, 7)))
	for _, o := range []Options{{Layers: []int{5, 40}}, {Layers: []int{5, 40}, Split: true, WarmStart: true}, {Layers: []int{200}, Init: InitRows}} {
		g, _ := build(t, e, x, n, c, o, 1)
		allocatesNothing(t, e, g, x, n, c, o)
	}
}

// allocatesNothing holds that a rebuild of g over x (n, c) makes no garbage but its figures,
// and a step none at all.
func allocatesNothing(t *testing.T, e *kernel.Engine, g *Graph, x []float32, n, c int, o Options) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	if got := allocs.PerRun(3, func() { _, _ = g.Build(e, x, r) }); got > 20 {
		t.Errorf("%+v: %v allocations a build", o, got)
	}
	owner, reach, dst := make([]int32, 50), make([]float32, 50), make([]float32, 50*n)
	if got := allocs.PerRun(3, func() {
		g.Attach(e, x[:50*c], owner, reach)
		g.Insert(n-20, owner, reach)
		g.From(e, x[:50*c], dst)
	}); got != 0 {
		t.Errorf("%+v: %v allocations a step", o, got)
	}
}

// FuzzDistances compares graphs of any shape with the oracle.
func FuzzDistances(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 77))
		f.Add(seed, uint16(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, c, bottom, middle, top, flags uint8) {
		points, channels := 2+int(n)%400, 1+int(c)%20
		k := 1 + int(bottom)%min(points, 80)
		o := Options{Neighbours: 1 + int(flags>>4), Split: flags&1 != 0, WarmStart: flags&4 != 0, Iterations: 1 + int(top)%4}
		if flags&2 != 0 {
			o.Init = InitRows
		}
		for _, l := range []int{int(top) % 10, int(middle) % 30, k} {
			if l > 0 && l <= k && (len(o.Layers) == 0 || l > o.Layers[len(o.Layers)-1]) {
				o.Layers = append(o.Layers, l)
			}
		}
		r := rand.New(rand.NewPCG(seed, 5))
		x := mixture(points, channels, 1+r.IntN(40), r.Float64(), r)
		if flags&8 != 0 { // many points coincide
			for j := range points / 2 {
				copy(x[j*channels:(j+1)*channels], x[j%7*channels:])
			}
		}
		e := engine(t, 1+int(seed%3))
		g, s := build(t, e, x, points, channels, o, seed)
		for range 2 {
			for i := 1; i < len(s.Objective); i++ {
				if s.Objective[i] > s.Objective[i-1]+1e-6 && !o.Split {
					t.Fatalf("the objective rises: %v", s.Objective)
				}
			}
			// Points on a circle may be so near to each other that the rounding of a
			// dot product, 6e-8, changes an angle by 5e-5.
			checkDistances(t, g, x, 1e-3, r)
			s = check.Get(g.Build(e, x, r))(t)
		}
	})
}

// A graph and its builds need far less memory than one N x K matrix.
func TestMemory(t *testing.T) {
	const n, c, k = 20000, 32, 200
	x := mixture(n, c, 100, .6, rand.New(rand.NewPCG(7, 7)))
	e := engine(t, 2)
	for _, o := range []Options{{Layers: []int{16, k}}, {Layers: []int{16, k}, Split: true, WarmStart: true}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g, _ := build(t, e, x, n, c, o, 1)
		check.Get(g.Build(e, x, rand.New(rand.NewPCG(2, 2))))(t)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > n*k*4/3 {
			t.Errorf("%+v: %d KB, an N x K matrix has %d", o, got/1024, n*k*4/1024)
		}
	}
}
