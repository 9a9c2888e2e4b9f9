package geodesic

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/internal/kernel"
)

// group builds the layers from the bottom: the points are clustered into the bottom
// centres, these into the centres of the layer above, and so on. Every parent has a child.
func (g *Graph) group(e *kernel.Engine, x []float32, r *rand.Rand) {
	g.objective = g.objective[:0]
	b := g.bottom()
	all := clustering{x: x, n: g.points, centres: b.Centres, used: g.warm(b), owner: g.Owner, best: g.Reach}
	b.Used, g.objective = g.cluster.run(e, all, len(b.Parent), g.options, r, g.objective)
	clear(b.Centres[b.Used*g.channels:])
	for i := len(g.Layers) - 2; i >= 0; i-- {
		l, below := g.Layers[i], g.Layers[i+1]
		// climb is free until the graph is linked.
		centres := clustering{x: below.Centres, n: below.Used, centres: l.Centres, used: g.warm(l), owner: below.Parent,
			best: l.climb}
		g.cluster.run(e, centres, len(l.Parent), g.options, r, nil)
		l.Used = g.cluster.finish()
		clear(l.Centres[l.Used*g.channels:])
	}
	clear(g.Layers[0].Parent)
	for i := 1; i < len(g.Layers); i++ {
		g.sort(i)
	}
}

// warm returns how many centres of l a clustering begins with.
func (g *Graph) warm(l *Layer) int {
	if !g.options.WarmStart {
		return 0
	}
	return l.Used
}

// sort puts the centres of layer i in the order of their parents, and tells their
// children.
func (g *Graph) sort(i int) {
	above, l, c := g.Layers[i-1], g.Layers[i], g.channels
	old, parents, moved := g.cluster.partial[:l.Used*c], g.cluster.counts[:l.Used], l.entry[:l.Used]
	copy(old, l.Centres)
	copy(parents, l.Parent)
	above.setFirst(l) // Relink sets it again
	for j, p := range parents {
		at := above.first[p]
		above.first[p]++
		copy(l.Centres[int(at)*c:], old[j*c:(j+1)*c])
		l.Parent[at], moved[j] = p, at
	}
	if i+1 < len(g.Layers) {
		below := g.Layers[i+1]
		for j, p := range below.Parent[:below.Used] {
			below.Parent[j] = moved[p]
		}
	}
}

// splitter is the memory of a build from the top.
type splitter struct {
	order []int32   // (N) points in the order of their clusters
	label []int32   // (N) the new cluster of each, counted from the first of its parent
	begin []int32   // (K+1) where the clusters of the layer above begin in order
	next  []int32   // (K+1) where those of this layer do
	old   []float32 // (K, C) centres of the layer in the build before, for a warm start
	first []int32   // (K+1) where the children of each parent began in old

	objective []float64
}

func (s *splitter) init(points int, warm bool, bottom *Layer) {
	k := len(bottom.Parent)
	s.order, s.label = make([]int32, points), make([]int32, points)
	s.begin, s.next, s.first = make([]int32, k+1), make([]int32, k+1), make([]int32, k+1)
	if warm {
		s.old = make([]float32, len(bottom.Centres))
	}
}

// divide builds the layers from the top: the points are clustered, the points of each
// cluster again, and so on (Mei et al., section 3.3, Q1). The
// K_l+1 clusters of a layer are dealt out evenly to the clusters above; one that has fewer
// distinct points than its share makes fewer.
func (g *Graph) divide(e *kernel.Engine, x []float32, r *rand.Rand) {
	s, n := &g.split, g.points
	for j := range s.order {
		s.order[j] = int32(j)
	}
	g.objective = g.objective[:0]
	above, steady := 1, true // clusters above; whether they are those of the build before
	s.begin[0], s.begin[1] = 0, int32(n)
	for i, l := range g.Layers {
		before := l.Used
		have := g.keepOld(i, steady)
		l.Used = 0
		s.next[0] = 0
		for p := range above {
			lo, hi := int(s.begin[p]), int(s.begin[p+1])
			share := (p+1)*len(l.Parent)/above - p*len(l.Parent)/above
			g.divideOne(e, x, r, i, p, lo, hi, share, have)
		}
		steady = steady && have && l.Used == before
		clear(l.Centres[l.Used*g.channels:])
		above = l.Used
		s.begin, s.next = s.next, s.begin
	}
}

// keepOld saves the centres of layer i for a warm start and says whether there is one.
func (g *Graph) keepOld(i int, steady bool) bool {
	s, l := &g.split, g.Layers[i]
	if !g.options.WarmStart || !steady || l.Used == 0 {
		return false
	}
	copy(s.old, l.Centres[:l.Used*g.channels])
	s.first[0], s.first[1] = 0, int32(l.Used)
	if i > 0 {
		copy(s.first, g.Layers[i-1].first)
	}
	return true
}

// divideOne clusters the points order[lo:hi], those of cluster p of the layer above, into
// at most share clusters and adds these to layer i.
func (g *Graph) divideOne(e *kernel.Engine, x []float32, r *rand.Rand, i, p, lo, hi, share int, warm bool) {
	s, l, c := &g.split, g.Layers[i], g.channels
	rows, label := s.order[lo:hi], s.label[lo:hi]
	centres, have := l.Centres[l.Used*c:], 0
	if warm {
		from, to := int(s.first[p]), int(s.first[p+1])
		have = min(to-from, share, hi-lo)
		copy(centres, s.old[from*c:(from+have)*c])
	}
	points := clustering{x: x, rows: rows, n: hi - lo, centres: centres, used: have, owner: label, best: g.Reach[lo:hi]}
	objective := g.split.objective[:0]
	if i == 0 {
		points.rows, objective = nil, g.objective // all, in their own order
	}
	_, objective = g.cluster.run(e, points, share, g.options, r, objective)
	used := g.cluster.finish()
	if i == 0 {
		g.objective = objective
	} else {
		g.split.objective = objective
	}
	// Sort the points by their new cluster. begin counts, then says where the next goes.
	begin := s.next[l.Used : l.Used+used+1]
	clear(begin[1:])
	for _, q := range label {
		begin[q+1]++
	}
	for q := range used {
		begin[q+1] += begin[q]
		l.Parent[l.Used+q] = int32(p)
	}
	l.Used += used
	sorted, at := g.Owner[lo:hi], g.cluster.counts[:used] // Owner is free until the last assignment
	copy(at, begin)
	for j, q := range label {
		sorted[int(at[q])-lo] = rows[j]
		at[q]++
	}
	copy(rows, sorted)
}
