package geodesic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Figures of the pool equal sums over all pairs of points.
func TestUsage(t *testing.T) {
	const n, c, limit = 250, 6, 2.5
	e, r := engine(t, 1), rand.New(rand.NewPCG(4, 1))
	x := mixture(n, c, 8, .2, r)
	g, s := build(t, e, x, n, c, Options{Layers: []int{3, 24}, Neighbours: 1, Limit: limit}, 2)
	count, reach := map[int32]float64{}, map[int32]float64{}
	for j, o := range g.Owner {
		count[o]++
		reach[o] += float64(g.Reach[j])
	}
	entropy, busiest := 0., 0.
	for _, k := range count {
		entropy -= k / n * math.Log(k/n)
		busiest = max(busiest, k/n)
	}
	var path, reached, unreached, truncated float64
	for i := range n {
		for j := range n {
			a, b := g.Owner[i], g.Owner[j]
			d := float64(g.Reach[i]+g.Reach[j]) + float64(g.path(a, b))
			if math.IsInf(d, 1) {
				unreached++
				continue
			}
			path, reached = path+d, reached+1
			if reach[a]/count[a]+reach[b]/count[b]+float64(g.path(a, b)) > limit {
				truncated++
			}
		}
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"entropy", s.Entropy, entropy}, {"busiest", s.Busiest, busiest}, {"empty", float64(s.Empty), float64(g.Used - len(count))},
		{"path", s.Path, path / reached}, {"unreached", s.Unreached, unreached / n / n}, {"truncated", s.Truncated, truncated / n / n},
	} {
		if !(math.Abs(v.got-v.want) <= 1e-4) {
			t.Errorf("%s: %v, want %v", v.name, v.got, v.want)
		}
	}
	if unreached == 0 || truncated == 0 {
		t.Fatal("the pool has no pair out of reach, or none truncated")
	}
	// They follow the points that are inserted.
	owner := make([]int32, n)
	g.Insert(0, owner, make([]float32, n))
	if s := g.Stats(); s.Entropy != 0 || s.Busiest != 1 || s.Path != 0 || s.Empty != g.Used-1 {
		t.Fatalf("with all points on one centre: %+v", s)
	}
}

// Components, degrees and edges by hand: five centres on an arc at 0, 10, 30, 32 and 90
// degrees with one neighbour each, see TestNeighbours.
func TestLayerStats(t *testing.T) {
	g := check.Get(New(5, 2, Options{Layers: []int{5}, Neighbours: 1}))(t)
	for i, d := range []float64{0, 10, 30, 32, 90} {
		g.Centres[2*i], g.Centres[2*i+1] = float32(math.Cos(d*math.Pi/180)), float32(math.Sin(d*math.Pi/180))
	}
	g.Layers[0].Used = 5
	g.Relink(engine(t, 1))
	got := g.Stats().Layers[0]
	want := LayerStats{Centres: 5, Graphs: 1, Edges: 3, Components: 2, Smallest: 2, Largest: 3, DegreeMin: 1, DegreeMean: 1.2, DegreeMax: 2,
		ComponentsBound: ComponentsBound(5, 1), OnesAbove: EdgesAbove(5, 1), OnesBelow: EdgesBelow(5, 4), EdgesBelow: EdgesTuran(5, 4)}
	if got != want {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}
