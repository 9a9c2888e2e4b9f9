package geodesic

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel"
)

// connect completes Paths to eq. 2 of Mei et al. between bottom centres. On entry the
// blocks of siblings hold d_g. See the package comment for the reading of eq. 2.
func (g *Graph) connect() {
	bottom := len(g.Layers) - 1
	if bottom == 0 {
		return
	}
	clear(g.Layers[bottom].climb)
	for k := bottom - 1; k >= 0; k-- {
		g.setDrop(k)
		g.setClimb(k)
	}
	n, width := g.Used, len(g.bottom().Parent)
	for p := range n {
		for q := range p {
			d := g.across(p, q)
			g.Paths[p*width+q], g.Paths[q*width+p] = d, d
		}
	}
}

// across is eq. 2 between bottom centres p and q: both climb to layer s, the lowest one at
// which their ancestors share a parent, where the graph joins these.
//
//	d(p, q) = d_g(C_s(p), C_s(q)) + d(p, C_s(p)) + d(q, C_s(q))
func (g *Graph) across(p, q int) float32 {
	a, b := int32(p), int32(q)
	s := len(g.Layers) - 1
	for ; g.Layers[s].Parent[a] != g.Layers[s].Parent[b]; s-- {
		a, b = g.Layers[s].Parent[a], g.Layers[s].Parent[b]
	}
	l := g.Layers[s]
	return l.dist[int(a)*len(l.Parent)+int(b)] + (l.climb[p] + l.climb[q])
}

// setClimb sets the distance of every bottom centre p to its ancestor in layer k < n, the
// second line of eq. 2: over the siblings in layer k+1 to the one that the ancestor, taken
// as a point, belongs to, and from there to the ancestor.
//
//	d(p, C_k(p)) = d(p, C_k+1(p)) + d_g(C_k+1(p), C_k+1(C_k(p))) + d(C_k(p), C_k+1(C_k(p)))
func (g *Graph) setClimb(k int) {
	l, below := g.Layers[k], g.Layers[k+1]
	for p := range g.Used {
		child := int32(p)
		for m := len(g.Layers) - 1; m > k+1; m-- {
			child = g.Layers[m].Parent[child]
		}
		l.climb[p] = below.climb[p] + g.up(k, child)
	}
}

// up is the distance from a centre of layer k+1 to its parent.
func (g *Graph) up(k int, child int32) float32 {
	l, below, c := g.Layers[k], g.Layers[k+1], g.channels
	parent := below.Parent[child]
	if g.options.DirectLegs {
		return g.metric.distance(below.Centres[int(child)*c:int(child+1)*c], l.Centres[int(parent)*c:int(parent+1)*c])
	}
	return below.dist[int(child)*len(below.Parent)+int(l.entry[parent])] + l.drop[parent]
}

// setDrop sets for every centre c of layer k its nearest child, C_k+1(c), and
// d(c, C_k+1(c)), for which c climbs as a point does: from its nearest descendant in the
// bottom layer, found child by child, at the local distance to it.
func (g *Graph) setDrop(k int) {
	l, c := g.Layers[k], g.channels
	for i := range l.Used {
		x := l.Centres[i*c : (i+1)*c]
		at := g.nearestChild(k, i, x)
		l.entry[i] = int32(at)
		legs := float32(0)
		for m := k + 1; m < len(g.Layers)-1; m++ {
			next := g.nearestChild(m, at, x)
			legs += g.up(m, int32(next))
			at = next
		}
		l.drop[i] = g.metric.distance(x, g.Centres[at*c:(at+1)*c]) + legs
	}
}

// tie is the difference of likenesses from which one centre counts as nearer than
// another to a parent. A parent of two children is the middle between them, so that
// rounding alone would decide.
const tie = 1e-6

// nearestChild returns the child of centre i of layer k that is nearest to x, the first
// of several that tie.
func (g *Graph) nearestChild(k, i int, x []float32) int {
	l, below, c := g.Layers[k], g.Layers[k+1], g.channels
	best, at := float32(math.Inf(-1)), int(l.first[i])
	for j := at; j < int(l.first[i+1]); j++ {
		if d := g.metric.likeness(x, below.Centres[j*c:(j+1)*c]); d > best+g.metric.tie(best, x) {
			best, at = d, j
		}
	}
	return at
}

// path returns Paths between bottom centres.
func (g *Graph) path(i, j int32) float32 { return g.Paths[int(i)*len(g.bottom().Parent)+int(j)] }

// Between returns the length of the path between points i and j of the pool, eq. 2 of Mei
// et al.: by way of their centres even where they share one, and 0 for a point and itself.
func (g *Graph) Between(i, j int) float32 {
	if i == j {
		return 0
	}
	return g.Reach[i] + g.path(g.Owner[i], g.Owner[j]) + g.Reach[j]
}

// BetweenDirect is Between with the trivial metric within a cluster, as the text of the
// paper has it: points of x (N, C) that share a centre are joined directly.
func (g *Graph) BetweenDirect(x []float32, i, j int) float32 {
	if i == j || g.Owner[i] != g.Owner[j] {
		return g.Between(i, j)
	}
	c := g.channels
	return g.metric.distance(x[i*c:(i+1)*c], x[j*c:(j+1)*c])
}

// fromRows is the number of rows that From has in hand at a time.
const fromRows = 256

// From sets dst (n, N) to the lengths of the paths from n points x (n, C) outside the pool
// to those in it, eq. 3 of Mei et al.: theta[i][j] = d(x_i, c) + d(c, x_j), c the
// bottom centre nearest to x_i.
func (g *Graph) From(e *kernel.Engine, x, dst []float32) {
	c := g.channels
	for n := len(x) / c; n > 0; {
		part := min(n, fromRows)
		g.Attach(e, x[:part*c], g.far.owner[:part], g.far.reach[:part])
		g.far.dst = dst
		e.For(part, 1, g.far.body)
		x, dst, n = x[part*c:], dst[part*g.points:], n-part
	}
	g.far.dst = nil
}

func (g *Graph) fromPart(_, lo, hi int) {
	width := len(g.bottom().Parent)
	for i := lo; i < hi; i++ {
		row, r := g.Paths[int(g.far.owner[i])*width:][:width], g.far.reach[i]
		dst := g.far.dst[i*g.points:][:g.points]
		for j, o := range g.Owner {
			dst[j] = r + row[o] + g.Reach[j]
		}
	}
}

// Cached sets dst (to-from, K) to rows [from, to) of the paper's cache of the distances of
// all points to all bottom centres: D[j][k] = Reach[j] + Paths[Owner[j]][k]. The graph
// keeps these factors instead, which are K times smaller.
func (g *Graph) Cached(dst []float32, from, to int) {
	width := len(g.bottom().Parent)
	for j := from; j < to; j++ {
		row, r := dst[(j-from)*width:][:width], g.Reach[j]
		for k, d := range g.Paths[int(g.Owner[j])*width:][:width] {
			row[k] = r + d
		}
	}
}
