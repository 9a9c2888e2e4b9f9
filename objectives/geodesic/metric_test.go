package geodesic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/space"
)

// mixture returns points of the options' metric around as many places as classes: unit
// vectors on each sphere, or Euclidean points near (3, 3, ...) at distances of about 1.
func (o Options) mixture(n, c, classes int, noise float64, r *rand.Rand) []float32 {
	m := o.Space.Groups()
	if !o.Space.Euclid {
		return mixtureOn(m, n, c, classes, noise, r)
	}
	x := mixture(n, c, classes, noise, r)
	for i := range x {
		x[i] += 3
	}
	return x
}

// mixtureOn draws the same class on every sphere.
func mixtureOn(spheres, n, c, classes int, noise float64, r *rand.Rand) []float32 {
	if spheres == 1 {
		return mixture(n, c, classes, noise, r)
	}
	mean := make([]float32, classes*c)
	for i := range mean {
		mean[i] = float32(r.NormFloat64())
	}
	x := make([]float32, n*c)
	for j := range n {
		k, row := r.IntN(classes), x[j*c:(j+1)*c]
		for i := range row {
			row[i] = mean[k*c+i] + float32(noise*r.NormFloat64())
		}
		for u := c / spheres; len(row) > 0; row = row[u:] {
			vector.Scale(row[:u], float32(1/math.Sqrt(vector.SumSq(row[:u]))), row[:u])
		}
	}
	return x
}

// topologies are those beside one sphere.
var topologies = []Options{{Space: space.Space{Spheres: 2}}, {Space: space.Space{Spheres: 4}}, {Space: space.Space{Euclid: true}, Limit: 10}}

// with returns o with the metric of m.
func (o Options) with(m Options) Options {
	o.Space, o.Limit = m.Space, m.Limit
	return o
}

func (o Options) topology() string {
	return fmt.Sprintf("spheres=%d/euclid=%t", o.Space.Spheres, o.Space.Euclid)
}

// Every distance of eq. 2 with another local metric equals the oracle's, for one to three
// layers of both constructions, before and after thousands of inserts.
func TestDistancesOfTopologies(t *testing.T) {
	const n, c = 500, 24
	e := engine(t, 2)
	for _, m := range topologies {
		for _, split := range []bool{false, true} {
			for _, layers := range [][]int{{40}, {6, 40}, {3, 12, 40}} {
				for _, direct := range []bool{false, true} {
					o := Options{Layers: layers, Split: split, Neighbours: 3, DirectLegs: direct}.with(m)
					t.Run(fmt.Sprintf("%s/split=%t/layers=%v/direct=%t", m.topology(), split, layers, direct), func(t *testing.T) {
						r := rand.New(rand.NewPCG(71, uint64(len(layers))))
						x := o.mixture(n, c, 30, .7, r)
						g, _ := build(t, e, x, n, c, o, 3)
						checkDistances(t, g, x, 2e-5, r)
						g.churn(t, x, 3000, r)
						checkDistances(t, g, x, 2e-5, r)
						for j := 1; j < n; j++ {
							if g.Owner[0] == g.Owner[j] {
								want := newOracle(g).trivial(wide(x[:c]), wide(x[j*c:(j+1)*c]))
								if got := g.BetweenDirect(x, 0, j); !within(got, want, 2e-5) {
									t.Fatalf("BetweenDirect(0, %d) is %v, want %v", j, got, want)
								}
							}
						}
					})
				}
			}
		}
	}
}

// The objective never rises on any topology, and equals its definition at the end; a warm
// start begins where the build before ended. Centres are unit vectors on each sphere, or
// the means of their points.
func TestObjectiveOfTopologies(t *testing.T) {
	e := engine(t, 2)
	for _, m := range topologies {
		for seed := range uint64(25) {
			r := rand.New(rand.NewPCG(seed, 72))
			n, c := 30+r.IntN(600), 4*(1+r.IntN(8))
			o := Options{Layers: []int{1 + r.IntN(min(n, 80))}, Iterations: 1 + r.IntN(8), WarmStart: seed%3 == 0, Split: seed%5 == 0}.with(m)
			if seed%2 == 0 {
				o.Init = InitRows
			}
			x := o.mixture(n, c, 1+r.IntN(40), r.Float64(), r)
			for j := range r.IntN(n / 2) { // some coincide
				copy(x[j*c:(j+1)*c], x[:c])
			}
			g, s := build(t, e, x, n, c, o, seed)
			for range 2 {
				for i := 1; i < len(s.Objective); i++ {
					if s.Objective[i] > s.Objective[i-1]+1e-6 {
						t.Fatalf("%s, seed %d: the objective rises: %v", m.topology(), seed, s.Objective)
					}
				}
				last := s.Objective[o.Iterations]
				if want := objectiveOf(g, x); !(math.Abs(last-want) <= 1e-5*(1+want)) {
					t.Fatalf("%s, seed %d: objective %v, want %v", m.topology(), seed, last, want)
				}
				checkUnits(t, g)
				s = check.Get(g.Build(e, x, r))(t)
				if o.WarmStart && s.Objective[0] > last+1e-6 {
					t.Fatalf("%s, seed %d: a warm start begins at %v, the build before ended at %v", m.topology(), seed, s.Objective[0], last)
				}
			}
		}
	}
}

// objectiveOf is the mean over the points of 1 - the mean cosine, or of the squared distance.
func objectiveOf(g *Graph, x []float32) (s float64) {
	o, c := newOracle(g), g.channels
	for j, k := range g.Owner {
		d := -o.likeness(wide(x[j*c:(j+1)*c]), wide(g.Centres[int(k)*c:(int(k)+1)*c]))
		if !g.options.Space.Euclid {
			d++
		}
		s += d / float64(g.points)
	}
	return s
}

func checkUnits(t *testing.T, g *Graph) {
	t.Helper()
	if g.options.Space.Euclid {
		return
	}
	u := g.channels / g.options.Space.Groups()
	for i, l := range g.Layers {
		for k := 0; k < l.Used*g.channels; k += u {
			if s := vector.SumSq(l.Centres[k : k+u]); !(math.Abs(s-1) <= 1e-5) {
				t.Fatalf("layer %d, centre %d, sphere %d: squared length %v", i, k/g.channels, k%g.channels/u, s)
			}
		}
	}
}

// Euclidean k-means by its definition in float64 from the same start, for points around the
// origin and far from it: moving all points moves the centres and changes nothing else.
func TestEuclideanLloyd(t *testing.T) {
	const n, c, k, iterations = 9500, 12, 20, 4 // sums go over more than one stretch of points
	base := mixture(n, c, 30, .6, rand.New(rand.NewPCG(73, 1)))
	e := engine(t, 2)
	for _, offset := range []float32{0, 100, -3000} {
		x := slices.Clone(base)
		for i := range x {
			x[i] += offset
		}
		var m kmeans
		m.init(c, k)
		m.metric = metric{1, true}
		centres := make([]float32, k*c)
		var points, want [][]float64
		for j := range n {
			points = append(points, wide(x[j*c:(j+1)*c]))
		}
		for i := range k {
			copy(centres[i*c:], x[(7*i+1)*c:(7*i+2)*c])
			want = append(want, wide(centres[i*c:(i+1)*c]))
		}
		owner, best := make([]int32, n), make([]float32, n)
		_, objective := m.run(e, clustering{x: x, n: n, centres: centres, used: k, owner: owner, best: best}, k, Options{Iterations: iterations}, nil, nil)
		var costs []float64
		for range iterations {
			costs = append(costs, euclideanLloyd(points, want))
		}
		for i, v := range objective {
			if !(math.Abs(v-costs[i]) <= 1e-4*costs[i]) {
				t.Errorf("offset %v: objectives %v, want %v", offset, objective, costs)
				break
			}
		}
		for i := 1; i < len(objective); i++ {
			if objective[i] > objective[i-1]+1e-6 {
				t.Errorf("offset %v: the objective rises: %v", offset, objective)
			}
		}
	}
}

// euclideanLloyd is one iteration; it returns the mean squared distance before the update.
func euclideanLloyd(x, centres [][]float64) (cost float64) {
	sums, counts := make([][]float64, len(centres)), make([]float64, len(centres))
	for i := range sums {
		sums[i] = make([]float64, len(centres[i]))
	}
	for _, p := range x {
		best, at := math.Inf(1), 0
		for i, c := range centres {
			var d float64
			for j, v := range p {
				d += (v - c[j]) * (v - c[j])
			}
			if d < best {
				best, at = d, i
			}
		}
		cost += best / float64(len(x))
		counts[at]++
		for j, v := range p {
			sums[at][j] += v
		}
	}
	for i, n := range counts {
		for j := range sums[i] {
			if n > 0 {
				centres[i][j] = sums[i][j] / n
			}
		}
	}
	return cost
}

// With fewer distinct points than centres there are as many centres as points, far from the
// origin too.
func TestDuplicatesOfTopologies(t *testing.T) {
	const n, c, distinct = 400, 8, 7
	e := engine(t, 2)
	for _, m := range append(topologies, Options{Space: space.Space{Euclid: true}, Limit: 10}) {
		rows := m.mixture(distinct, c, distinct, .1, rand.New(rand.NewPCG(3, 3)))
		if m.Space.Euclid {
			for i := range rows {
				rows[i] += 1000
			}
		}
		x := make([]float32, n*c)
		for j := range n {
			copy(x[j*c:], rows[j%distinct*c:][:c])
		}
		for _, o := range []Options{{Layers: []int{30}}, {Layers: []int{30}, Init: InitRows}, {Layers: []int{4, 30}}, {Layers: []int{4, 30}, Split: true}, {Layers: []int{4, 30}, WarmStart: true}} {
			o = o.with(m)
			g, s := build(t, e, x, n, c, o, 1)
			for range 2 {
				if g.Used != distinct || s.Empty != 0 {
					t.Fatalf("%+v: %d centres in use, %d of them empty", o, g.Used, s.Empty)
				}
				for j := range n {
					if g.Owner[j] != g.Owner[j%distinct] || g.Reach[j] > .005 {
						t.Fatalf("%+v: point %d: owner %d, reach %v", o, j, g.Owner[j], g.Reach[j])
					}
				}
				checkDistances(t, g, x, 1e-3, rand.New(rand.NewPCG(1, 1)))
				s = check.Get(g.Build(e, x, rand.New(rand.NewPCG(4, 4))))(t)
			}
		}
	}
}

// The same bits come out of any number of threads, and a converged warm start stays.
func TestDeterminismOfTopologies(t *testing.T) {
	const n, c = 1500, 32
	for _, m := range topologies {
		for _, o := range []Options{{Layers: []int{10, 60}}, {Layers: []int{4, 60}, Split: true, WarmStart: true, Iterations: 60}} {
			o = o.with(m)
			x := o.mixture(n, c, 60, .5, rand.New(rand.NewPCG(5, 5)))
			want, _ := build(t, engine(t, 1), x, n, c, o, 2)
			for _, threads := range []int{2, 3} {
				got, _ := build(t, engine(t, threads), x, n, c, o, 2)
				equal(t, got, want)
			}
			if o.WarmStart {
				owner := slices.Clone(want.Owner)
				check.Get(want.Build(engine(t, 2), x, rand.New(rand.NewPCG(88, 8))))(t)
				if !slices.Equal(owner, want.Owner) {
					t.Errorf("%s: a converged warm start has moved", m.topology())
				}
			}
		}
	}
}

func TestAllocationsOfTopologies(t *testing.T) {
	const n, c = 1000, 16
	e := engine(t, 2)
	for _, m := range topologies {
		for _, o := range []Options{{Layers: []int{5, 40}}, {Layers: []int{5, 40}, Split: true, WarmStart: true}} {
			o = o.with(m)
			x := o.mixture(n, c, 20, .6, rand.New(rand.NewPCG(7, 7)))
			g, _ := build(t, e, x, n, c, o, 1)
			allocatesNothing(t, e, g, x, n, c, o)
		}
	}
}

func TestTopologyErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"spheres must not be below 0 (got -3)":                         {Space: space.Space{Spheres: -3}},
		"12 channels do not divide into 5 spheres":                     {Space: space.Space{Spheres: 5}},
		"features of a Euclidean space have no spheres (got 2)":        {Space: space.Space{Spheres: 2, Euclid: true}, Limit: 1},
		"limit must be above 0 (got 0): Euclidean distances need one":  {Space: space.Space{Euclid: true}},
		"limit must be above 0 (got -1): Euclidean distances need one": {Space: space.Space{Euclid: true}, Limit: -1},
	} {
		o.Layers = []int{2}
		if _, err := New(9, 12, o); err == nil || !strings.HasPrefix(err.Error(), "geodesic: "+want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	// A bad row and its sphere are named, and the graph before stays.
	const n, c = 50, 8
	e, nan := engine(t, 2), float32(math.NaN())
	for _, b := range []struct {
		m    Options
		row  int
		set  []float32
		want string
	}{
		{Options{Space: space.Space{Spheres: 2}}, 7, []float32{1, 0, 0, 0, 0, 0, 0, 0}, "geodesic: row 7, sphere 1 is zero: fill every row"},
		{Options{Space: space.Space{Spheres: 2}}, 0, []float32{2, 0, 0, 0, 1, 0, 0, 0}, "geodesic: row 0, sphere 0 has length 2: divide rows by their length"},
		{Options{Space: space.Space{Spheres: 4}}, 49, []float32{1, 0, 1, 0, 0, nan, 1, 0}, "geodesic: row 49, sphere 2 is not finite"},
		{Options{Space: space.Space{Euclid: true}, Limit: 1}, 31, []float32{9, 0, 1, 0, 0, nan, 1, 0}, "geodesic: row 31 is not finite"},
	} {
		o := Options{Layers: []int{5}}.with(b.m)
		x := o.mixture(n, c, 5, .5, rand.New(rand.NewPCG(1, 1)))
		g, _ := build(t, e, x, n, c, o, 1)
		want, _ := build(t, e, x, n, c, o, 1)
		copy(x[b.row*c:], b.set)
		if _, err := g.Build(e, x, rand.New(rand.NewPCG(2, 2))); err == nil || !strings.HasPrefix(err.Error(), b.want) {
			t.Errorf("got %v, want %q", err, b.want)
		}
		equal(t, g, want)
	}
	a, _ := New(9, 12, Options{Layers: []int{2}, Space: space.Space{Spheres: 2}})
	b, _ := New(9, 12, Options{Layers: []int{2}, Space: space.Space{Spheres: 3}})
	mustPanic(t, func() { a.CopyFrom(b) })
}

// One sphere named as such is the graph without a name, bit for bit.
func TestOneSphere(t *testing.T) {
	const n, c = 600, 12
	e, x := engine(t, 2), mixture(n, c, 20, .6, rand.New(rand.NewPCG(7, 8)))
	for _, split := range []bool{false, true} {
		a, _ := build(t, e, x, n, c, Options{Layers: []int{4, 30}, Split: split}, 1)
		b, _ := build(t, e, x, n, c, Options{Layers: []int{4, 30}, Split: split, Space: space.Space{Spheres: 1}}, 1)
		equal(t, a, b)
	}
}

// Graphs of any shape on any topology equal the oracle, before and after a second build.
func TestTopologiesFuzz(t *testing.T) {
	for seed := range uint64(90) {
		r := rand.New(rand.NewPCG(seed, 79))
		n := 2 + r.IntN(300)
		k := 1 + r.IntN(min(n, 60))
		o := Options{Neighbours: 1 + r.IntN(9), Split: r.IntN(2) == 0, WarmStart: r.IntN(2) == 0, DirectLegs: r.IntN(2) == 0, Iterations: 1 + r.IntN(4)}
		o = o.with([]Options{{Space: space.Space{Spheres: 2}}, {Space: space.Space{Spheres: 1 + r.IntN(40)}}, {Space: space.Space{Euclid: true}, Limit: 10}}[seed%3])
		if r.IntN(2) == 0 {
			o.Init = InitRows
		}
		for _, l := range []int{r.IntN(8), r.IntN(25), k} {
			if l > 0 && l <= k && (len(o.Layers) == 0 || l > o.Layers[len(o.Layers)-1]) {
				o.Layers = append(o.Layers, l)
			}
		}
		c := o.Space.Groups() * (2 + r.IntN(7)) // of one channel, corners of a cube tie
		x := o.mixture(n, c, 1+r.IntN(30), r.Float64(), r)
		if r.IntN(3) == 0 { // many points coincide
			for j := range n / 2 {
				copy(x[j*c:(j+1)*c], x[j%7%n*c:])
			}
		}
		t.Logf("seed %d: %+v, %d points of %d channels", seed, o, n, c)
		g, s := build(t, engine(t, 1+int(seed%3)), x, n, c, o, seed)
		for range 2 {
			for i := 1; i < len(s.Objective); i++ {
				if s.Objective[i] > s.Objective[i-1]+1e-6 && !o.Split {
					t.Fatalf("seed %d, %+v: the objective rises: %v", seed, o, s.Objective)
				}
			}
			checkUnits(t, g)
			// Rounding of a dot product, 6e-8, may change a small angle by 5e-5, and so
			// on each sphere and edge of a path.
			checkDistances(t, g, x, 2e-3, r)
			s = check.Get(g.Build(engine(t, 2), x, r))(t)
		}
	}
}
