package geodesic

import (
	"math"
	"slices"
)

// Stats describe a graph and its use. Shares and means over pairs are over all ordered
// pairs of points of the pool, a point and itself included.
type Stats struct {
	Layers []LayerStats // top first
	// mean of 1 - dot product of a point with its centre, of several spheres 1 - the mean cosine, of Euclidean rows the
	// squared distance; see Build
	Objective []float64
	Entropy   float64 // of the use of the bottom centres, nats; at most ln(Used)
	Busiest   float64 // share of the points that the most used centre owns
	Empty     int     // bottom centres that own no point
	Reach     float64 // mean distance of a point to its centre
	Path      float64 // mean path between reachable points
	Unreached float64 // share of pairs that no path joins
	// share of pairs whose path is longer than the limit, each point taken at the mean reach of its centre
	Truncated float64
	Seconds   float64 // that the last Build took
}

// LayerStats describe the graphs of one layer, one for the children of each parent,
// with the bounds of theorems 1 and 2 of Mei et al. (eq. 4 to 6) summed over them.
type LayerStats struct {
	Centres    int
	Graphs     int
	Edges      int // undirected
	Components int
	Smallest   int // component, in centres
	Largest    int
	DegreeMin  int
	DegreeMean float64
	DegreeMax  int

	ComponentsBound float64 // eq. 4: Components is at most this
	OnesAbove       float64 // eq. 5, left: 2*Edges is more than this if components were complete
	OnesBelow       float64 // eq. 5, right: 2*Edges is at most this
	EdgesBelow      float64 // eq. 6: Edges is at most this
}

// Stats returns the figures of the graph and of the points it holds now.
func (g *Graph) Stats() Stats {
	s := Stats{Objective: slices.Clone(g.objective), Seconds: g.seconds}
	if g.Used == 0 {
		return s
	}
	for _, l := range g.Layers {
		s.Layers = append(s.Layers, l.stats())
	}
	g.usage(&s)
	return s
}

// usage fills in what depends on the points.
func (g *Graph) usage(s *Stats) {
	count, reach := make([]float64, g.Used), make([]float64, g.Used)
	for j, o := range g.Owner {
		count[o]++
		reach[o] += float64(g.Reach[j])
		s.Reach += float64(g.Reach[j]) / float64(g.points)
	}
	for i, n := range count {
		if n == 0 {
			s.Empty++
			continue
		}
		reach[i] /= n
		count[i] /= float64(g.points)
		s.Entropy -= count[i] * math.Log(count[i])
		s.Busiest = max(s.Busiest, count[i])
	}
	var reached float64
	width := len(g.bottom().Parent)
	for i, p := range count {
		for j, q := range count {
			w, d := p*q, float64(g.Paths[i*width+j])
			if w == 0 {
				continue
			}
			if math.IsInf(d, 1) {
				s.Unreached += w
				continue
			}
			d += reach[i] + reach[j]
			reached += w
			s.Path += w * d
			if d > float64(g.options.Limit) {
				s.Truncated += w
			}
		}
	}
	s.Path /= reached
}

// stats counts edges, degrees and components of a layer.
func (l *Layer) stats() LayerStats {
	s := LayerStats{Centres: l.Used, Edges: int(l.edges.start[l.Used]) / 2, Smallest: l.Used, DegreeMin: l.Used}
	s.DegreeMean = float64(l.edges.start[l.Used]) / float64(l.Used)
	for i := range l.Used {
		n := int(l.edges.start[i+1] - l.edges.start[i])
		s.DegreeMin, s.DegreeMax = min(s.DegreeMin, n), max(s.DegreeMax, n)
	}
	for lo := 0; lo < l.Used; {
		_, hi := l.siblings(lo)
		l.component(&s, lo, hi)
		lo = hi
	}
	return s
}

// component adds the graph of the siblings [lo, hi).
func (l *Layer) component(s *LayerStats, lo, hi int) {
	n, width := hi-lo, len(l.Parent)
	least, small, large := n, n, 0
	for i := lo; i < hi; i++ {
		least = min(least, int(l.edges.start[i+1]-l.edges.start[i]))
		// The component of i counts once, at its first centre.
		size, first := 0, true
		for j := lo; j < hi; j++ {
			if !math.IsInf(float64(l.dist[i*width+j]), 1) {
				size++
				first = first && j >= i
			}
		}
		if first {
			s.Components++
			small, large = min(small, size), max(large, size)
		}
	}
	s.Graphs++
	s.Smallest, s.Largest = min(s.Smallest, small), max(s.Largest, large)
	s.ComponentsBound += ComponentsBound(n, least)
	s.OnesAbove += EdgesAbove(n, max(small-1, 1))
	s.OnesBelow += EdgesBelow(n, large+1)
	s.EdgesBelow += EdgesTuran(n, large+1)
}
