package geodesic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// lloyd is spherical k-means as it is written down, in float64: assignments and updates
// from the given centres, without repair.
func lloyd(x, centres [][]float64, iterations int) {
	for range iterations {
		sums := make([][]float64, len(centres))
		for i := range sums {
			sums[i] = make([]float64, len(centres[i]))
		}
		for _, p := range x {
			best := 0
			for i, c := range centres {
				if dot(p, c) > dot(p, centres[best]) {
					best = i
				}
			}
			for c, v := range p {
				sums[best][c] += v
			}
		}
		for i, s := range sums {
			if n := math.Sqrt(dot(s, s)); n > 0 {
				for c := range s {
					centres[i][c] = s[c] / n
				}
			}
		}
	}
}

func TestLloyd(t *testing.T) {
	const n, c, k = 9500, 20, 25 // sums go over more than one stretch of points
	x := mixture(n, c, 40, .6, rand.New(rand.NewPCG(11, 1)))
	e := engine(t, 2)
	for _, subset := range []bool{false, true} {
		var m kmeans
		m.init(c, k)
		var rows []int32
		var points [][]float64
		for j := 0; j < n; j++ {
			if subset && j%3 == 0 {
				continue
			}
			rows = append(rows, int32(j))
			points = append(points, wide(x[j*c:(j+1)*c]))
		}
		if !subset {
			rows = nil
		}
		centres := make([]float32, k*c)
		var want [][]float64
		for i := range k {
			copy(centres[i*c:], x[(7*i+1)*c:(7*i+2)*c])
			want = append(want, wide(centres[i*c:(i+1)*c]))
		}
		owner, best := make([]int32, len(points)), make([]float32, len(points))
		lloyd(points, want, 4)
		used, objective := m.run(e, clustering{x: x, rows: rows, n: len(points), centres: centres, used: k, owner: owner, best: best}, k, Options{Iterations: 4}, nil, nil)
		if used != k || len(objective) != 4 {
			t.Fatalf("%d centres, objectives %v", used, objective)
		}
		for i := range want {
			if d := dot(want[i], wide(centres[i*c:(i+1)*c])); !(math.Abs(d-1) <= 1e-6) {
				t.Fatalf("subset=%t: centre %d has cosine %v with the plain one", subset, i, d)
			}
		}
	}
}

// The objective never rises, whatever the points, the start, or the construction.
func TestObjectiveNeverRises(t *testing.T) {
	e := engine(t, 2)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 99))
		n, c := 30+r.IntN(700), 2+r.IntN(20)
		x := mixture(n, c, 1+r.IntN(40), r.Float64(), r)
		for j := range r.IntN(n / 2) { // some coincide
			copy(x[j*c:(j+1)*c], x[:c])
		}
		k := 1 + r.IntN(min(n, 90))
		o := Options{Layers: []int{k}, Iterations: 1 + r.IntN(8), WarmStart: seed%3 == 0}
		if seed%2 == 0 {
			o.Init = InitRows
		}
		g, s := build(t, e, x, n, c, o, seed)
		for range 2 {
			if len(s.Objective) != o.Iterations+1 {
				t.Fatalf("%d objectives of %d iterations", len(s.Objective), o.Iterations)
			}
			for i := 1; i < len(s.Objective); i++ {
				if s.Objective[i] > s.Objective[i-1]+1e-6 {
					t.Fatalf("seed %d: the objective rises: %v", seed, s.Objective)
				}
			}
			last := s.Objective[o.Iterations]
			s = check.Get(g.Build(e, x, r))(t)
			if o.WarmStart && s.Objective[0] > last+1e-6 {
				t.Fatalf("seed %d: a warm start begins at %v, the build before ended at %v", seed, s.Objective[0], last)
			}
		}
	}
}

// Clusters without points receive the farthest ones, by hand: three centres at angle 0, of
// which the second and third get nothing, over points at 0, 12, 82 and 90 degrees. The
// farthest, at 90, takes the one at 82 along, which is 8 from it; then the farthest is that
// at 12, which takes nothing.
func TestRepair(t *testing.T) {
	const c = 2
	at := func(degrees ...float64) (x []float32) {
		for _, d := range degrees {
			x = append(x, float32(math.Cos(d*math.Pi/180)), float32(math.Sin(d*math.Pi/180)))
		}
		return x
	}
	var m kmeans
	m.init(c, 3)
	m.prepare(engine(t, 2))
	m.x, m.n, m.centres, m.used = at(0, 12, 82, 90), 4, at(0, 0, 0), 3
	m.owner, m.best = make([]int32, 4), make([]float32, 4)
	m.assign()
	m.repair()
	for j, want := range []int32{0, 2, 1, 1} {
		if m.owner[j] != want {
			t.Fatalf("owners %v, want [0 2 1 1]", m.owner)
		}
	}
	for i, v := range at(0, 90, 12) {
		if m.centres[i] != v {
			t.Fatalf("centres %v", m.centres)
		}
	}
	m.update()
	for i, v := range at(0, 86, 12) {
		if !(math.Abs(float64(m.centres[i]-v)) <= 1e-6) {
			t.Fatalf("centres after the update %v", m.centres)
		}
	}
}

// A cluster whose points cancel out keeps its centre.
func TestUpdateOfOpposites(t *testing.T) {
	var m kmeans
	m.init(2, 1)
	m.prepare(engine(t, 1))
	m.x, m.n, m.centres, m.used = []float32{0, 1, 0, -1}, 2, []float32{1, 0}, 1
	m.owner, m.best = make([]int32, 2), make([]float32, 2)
	m.assign()
	m.repair()
	m.update()
	if m.centres[0] != 1 || m.centres[1] != 0 {
		t.Fatalf("centre %v", m.centres)
	}
}

// Both starts are distinct rows of the points.
func TestSeeds(t *testing.T) {
	const n, c, k = 500, 6, 60
	x := mixture(n, c, n, 1, rand.New(rand.NewPCG(1, 5)))
	rows := map[[c]float32]bool{}
	for j := range n {
		rows[[c]float32(x[j*c:])] = true
	}
	for _, init := range []string{InitRows, InitPlusPlus} {
		var m kmeans
		m.init(c, k)
		m.prepare(engine(t, 2))
		m.x, m.n, m.centres = x, n, make([]float32, k*c)
		if got := m.start(0, k, init, rand.New(rand.NewPCG(8, 8))); got != k {
			t.Fatalf("%s: %d centres", init, got)
		}
		seen := map[[c]float32]bool{}
		for i := range k {
			row := [c]float32(m.centre(i))
			if !rows[row] || seen[row] {
				t.Fatalf("%s: centre %d is not a row, or one for the second time", init, i)
			}
			seen[row] = true
		}
		// More centres are made beside those that are there.
		first := [c]float32(m.centre(0))
		m.start(1, k, init, rand.New(rand.NewPCG(9, 9)))
		if [c]float32(m.centre(0)) != first {
			t.Fatalf("%s: a centre that was there has changed", init)
		}
	}
}

// k-means++ draws no point twice, so it ends where all points coincide with a centre.
func TestSeedsOfDuplicates(t *testing.T) {
	const n, c, k = 500, 6, 60
	x := mixture(n, c, n, 1, rand.New(rand.NewPCG(1, 5)))
	for j := range n {
		copy(x[j*c:(j+1)*c], x[j%11*c:])
	}
	var m kmeans
	m.init(c, k)
	m.prepare(engine(t, 2))
	m.x, m.n, m.centres = x, n, make([]float32, k*c)
	if got := m.start(0, k, InitPlusPlus, rand.New(rand.NewPCG(8, 8))); got != 11 {
		t.Fatalf("%d centres of 11 distinct points", got)
	}
}

// Once a clustering has converged, a warm start stays there whatever is drawn, in every
// layer of both constructions; a cold one does not.
func TestWarmStart(t *testing.T) {
	const n, c = 900, 12
	e := engine(t, 2)
	x := mixture(n, c, 60, .4, rand.New(rand.NewPCG(6, 1)))
	for _, split := range []bool{false, true} {
		for _, warm := range []bool{false, true} {
			o := Options{Layers: []int{3, 9, 40}, Split: split, WarmStart: warm, Iterations: 60}
			g, _ := build(t, e, x, n, c, o, 1)
			owner := slices.Clone(g.Owner)
			check.Get(g.Build(e, x, rand.New(rand.NewPCG(88, 8))))(t)
			if got := slices.Equal(owner, g.Owner); got != warm {
				t.Errorf("split=%t warm=%t: the same clusters: %t", split, warm, got)
			}
		}
	}
}

// k-means++ finds each of a few tight and distant groups; rows drawn blindly do not.
func TestPlusPlusSpreads(t *testing.T) {
	const n, c, k = 2000, 8, 8
	r := rand.New(rand.NewPCG(2, 2))
	x := make([]float32, n*c)
	for j := range n {
		axis := 0
		if j%10 == 0 {
			axis = (j / 10) % k // seven of ten percent are not on axis 0
		}
		var sq float64
		for i := range c {
			v := .01 * r.NormFloat64()
			if i == axis {
				v++
			}
			x[j*c+i] = float32(v)
			sq += v * v
		}
		for i := range c {
			x[j*c+i] /= float32(math.Sqrt(sq))
		}
	}
	_, s := build(t, engine(t, 1), x, n, c, Options{Layers: []int{k}}, 1)
	if s.Objective[0] > .001 {
		t.Fatalf("objective %v at the start: a group has no centre", s.Objective[0])
	}
}
