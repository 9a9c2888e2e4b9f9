package geodesic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
)

// engine returns an engine of the built-in product, which is everywhere.
func engine(t testing.TB, threads int) *kernel.Engine {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: threads}))(t)
	t.Cleanup(e.Close)
	return e
}

// mixture returns n unit rows of c channels around as many directions as classes.
func mixture(n, c, classes int, noise float64, r *rand.Rand) []float32 {
	mean := make([]float64, classes*c)
	for i := range mean {
		mean[i] = r.NormFloat64()
	}
	x := make([]float32, n*c)
	for j := range n {
		k, row, sq := r.IntN(classes), x[j*c:(j+1)*c], 0.
		for i := range row {
			v := mean[k*c+i] + noise*r.NormFloat64()
			row[i] = float32(v)
			sq += v * v
		}
		for i := range row {
			row[i] = float32(float64(row[i]) / math.Sqrt(sq))
		}
	}
	return x
}

func build(t testing.TB, e *kernel.Engine, x []float32, n, c int, o Options, seed uint64) (*Graph, Stats) {
	t.Helper()
	g := check.Get(New(n, c, o))(t)
	s := check.Get(g.Build(e, x, rand.New(rand.NewPCG(seed, 7))))(t)
	return g, s
}

// oracle computes every distance of a graph from its centres and parents alone: in
// float64, with an explicit map of edges, the plainest Dijkstra, and eq. 2 as the
// recursion that it is written as.
type oracle struct {
	layers []oracleLayer // top first
	direct bool
	metric metric               // spheres and Euclid alone are read
	cache  map[[3]int][]float64 // paths from a centre (layer, centre)

	// doubt says that what between returned last hangs on which of two children is the nearer one, which rounding in float32 decides.
	doubt bool
}

type oracleLayer struct {
	centres [][]float64
	parent  []int
	edges   []map[int]float64
}

func newOracle(g *Graph) *oracle {
	o := &oracle{direct: g.options.DirectLegs, metric: g.metric, cache: map[[3]int][]float64{}}
	for _, l := range g.Layers {
		var y oracleLayer
		for i := range l.Used {
			y.centres = append(y.centres, wide(l.Centres[i*g.channels:(i+1)*g.channels]))
			y.parent = append(y.parent, int(l.Parent[i]))
			y.edges = append(y.edges, map[int]float64{})
		}
		for i := range l.Used {
			for _, j := range o.nearest(g, l, y, i) {
				w := o.trivial(y.centres[i], y.centres[j])
				y.edges[i][j], y.edges[j][i] = w, w
			}
		}
		o.layers = append(o.layers, y)
	}
	return o
}

// nearest returns the siblings that centre i of a layer chooses. On a sphere those that are as near as the last one, up to the
// rounding of a product, are the ones that the graph has taken.
func (o *oracle) nearest(g *Graph, l *Layer, y oracleLayer, i int) []int {
	var others []int
	for j := range l.Used {
		if j != i && y.parent[i] == y.parent[j] {
			others = append(others, j)
		}
	}
	sphere := !o.metric.euclid && o.metric.spheres == 1
	slices.SortStableFunc(others, func(a, b int) int {
		if sphere { // not by the angle, which has a least value
			return cmpFloat(o.likeness(y.centres[i], y.centres[b]), o.likeness(y.centres[i], y.centres[a]))
		}
		return cmpFloat(o.trivial(y.centres[i], y.centres[a]), o.trivial(y.centres[i], y.centres[b]))
	})
	n := min(len(others), g.options.Neighbours)
	if n == 0 || !sphere {
		return others[:n]
	}
	taken, _ := l.Neighbours(i)
	last := o.likeness(y.centres[i], y.centres[others[n-1]])
	var list, left []int
	for _, j := range others {
		switch d := o.likeness(y.centres[i], y.centres[j]) - last; {
		case d > rounding || d >= -rounding && slices.Contains(taken, int32(j)):
			list = append(list, j)
		case d >= -rounding:
			left = append(left, j)
		}
	}
	return append(list, left[:max(0, n-len(list))]...) // where the graph has taken too few
}

// rounding is how far the product of two unit rows in float32 may be from that in float64.
const rounding = 2e-7

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func dot(x, y []float64) (s float64) {
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

// trivial is the angle with the clamp of vector.AcosLimit, in float32 as everywhere.
func trivial(x, y []float64) float64 {
	const limit = float64(float32(1 - 1e-6))
	return math.Acos(max(-limit, min(dot(x, y), limit)))
}

// trivial is the local distance: on a product of spheres the root of the squared angles.
func (o *oracle) trivial(x, y []float64) float64 {
	if o.metric.euclid {
		return math.Sqrt(-o.likeness(x, y))
	}
	var s float64
	n := len(x) / o.metric.spheres
	for lo := 0; lo < len(x); lo += n {
		a := trivial(x[lo:lo+n], y[lo:lo+n])
		s += a * a
	}
	return math.Sqrt(s)
}

// likeness is largest for the nearest point by chord.
func (o *oracle) likeness(x, y []float64) (s float64) {
	if !o.metric.euclid {
		return dot(x, y) / float64(o.metric.spheres)
	}
	for i, v := range x {
		s -= (v - y[i]) * (v - y[i])
	}
	return s
}

func (o *oracle) tie(best float64, x []float64) float64 {
	if o.metric.euclid && !math.IsInf(best, 0) {
		return tie * (math.Sqrt(best*-dot(x, x)) - best)
	}
	return tie
}

// graph is d_g between centres a and b of a layer: Dijkstra over all, edges join siblings
// only.
func (o *oracle) graph(layer, a, b int) float64 {
	key := [3]int{layer, a}
	if o.cache[key] == nil {
		y := o.layers[layer]
		dist, done := make([]float64, len(y.centres)), make([]bool, len(y.centres))
		for i := range dist {
			dist[i] = math.Inf(1)
		}
		dist[a] = 0
		for range dist {
			at := -1
			for i := range dist {
				if !done[i] && !math.IsInf(dist[i], 1) && (at < 0 || dist[i] < dist[at]) {
					at = i
				}
			}
			if at < 0 {
				break
			}
			done[at] = true
			for j, w := range y.edges[at] {
				dist[j] = min(dist[j], dist[at]+w)
			}
		}
		o.cache[key] = dist
	}
	return o.cache[key][b]
}

// chain returns the centre of a point in every layer, from its centre in the bottom one.
func (o *oracle) chain(bottom int) []int {
	c := make([]int, len(o.layers))
	for k := len(c) - 1; k >= 0; k-- {
		c[k] = bottom
		bottom = o.layers[k].parent[bottom]
	}
	return c
}

// descend returns the chain of centre i of a layer taken as a point: of children that
// are equally near the first.
func (o *oracle) descend(layer, i int) []int {
	x := o.layers[layer].centres[i]
	for k := layer + 1; k < len(o.layers); k++ {
		best, at := math.Inf(-1), -1
		for j, c := range o.layers[k].centres {
			if o.layers[k].parent[j] != i {
				continue
			}
			d, least := o.likeness(x, c), best+o.tie(best, x)
			o.doubt = o.doubt || math.Abs(d-least) < o.tie(best, x)/5
			if d > least {
				best, at = d, j
			}
		}
		i = at
	}
	return o.chain(i)
}

// toCentre is d(x, C_k(x)) of eq. 2 for a point with the given chain.
func (o *oracle) toCentre(x []float64, chain []int, k int) float64 {
	if k == len(o.layers)-1 {
		return o.trivial(x, o.layers[k].centres[chain[k]])
	}
	centre := o.layers[k].centres[chain[k]]
	if o.direct {
		return o.toCentre(x, chain, k+1) + o.trivial(centre, o.layers[k+1].centres[chain[k+1]])
	}
	of := o.descend(k, chain[k])
	return o.graph(k+1, chain[k+1], of[k+1]) + o.toCentre(x, chain, k+1) + o.toCentre(centre, of, k+1)
}

// between is eq. 2 for points whose bottom centres are given.
func (o *oracle) between(x []float64, a int, y []float64, b int) float64 {
	o.doubt = false
	ca, cb := o.chain(a), o.chain(b)
	s := len(o.layers) - 1
	for s > 0 && o.layers[s].parent[ca[s]] != o.layers[s].parent[cb[s]] {
		s--
	}
	return o.graph(s, ca[s], cb[s]) + o.toCentre(x, ca, s) + o.toCentre(y, cb, s)
}

// near says whether distances are equal: both infinite, or to 1e-5.
func near(got float32, want float64) bool { return within(got, want, 1e-5) }

func within(got float32, want, tolerance float64) bool {
	if math.IsInf(want, 1) {
		return math.IsInf(float64(got), 1)
	}
	return math.Abs(float64(got)-want) <= tolerance
}
