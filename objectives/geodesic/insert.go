package geodesic

import "github.com/geoalign/geoalign/internal/kernel"

// Attach finds for points x (n, C) the nearest bottom centre, the first of equal ones, and
// the local distance to it (Mei et al., section 3.3, Q3). The graph stays as it is. Before the
// first Build all are 0. A row with NaN gets a reach of NaN.
func (g *Graph) Attach(e *kernel.Engine, x []float32, owner []int32, reach []float32) {
	n := len(x) / g.channels
	if g.Used == 0 {
		clear(owner[:n])
		clear(reach[:n])
		return
	}
	g.cluster.nearest(e, clustering{x: x, n: n, centres: g.Centres, used: g.Used, owner: owner[:n], best: reach[:n]})
	g.cluster.reaches()
}

// Insert writes points that were attached over the oldest ones: into rows at, at+1 and so
// on of the ring, which begins again at row 0 after row N-1.
func (g *Graph) Insert(at int, owner []int32, reach []float32) {
	if len(owner) != len(reach) || len(owner) > g.points || at < 0 || at >= g.points {
		panic("geodesic: Insert: more points than the ring holds, or a place outside it")
	}
	n := copy(g.Owner[at:], owner)
	copy(g.Owner, owner[n:])
	copy(g.Reach[at:], reach)
	copy(g.Reach, reach[n:])
}
