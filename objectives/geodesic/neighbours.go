package geodesic

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// edges are the undirected edges of a layer, which join siblings only, as a list of
// neighbours per centre in growing order.
type edges struct {
	start []int32   // (K+1)
	to    []int32   // neighbour, an index into the layer
	angle []float32 // local distance, radians on spheres
}

func newEdges(k, neighbours int) edges {
	// Each of k choices makes two entries at most.
	n := 2 * k * min(neighbours, k-1)
	return edges{start: make([]int32, k+1), to: make([]int32, 0, n), angle: make([]float32, 0, n)}
}

func (d *edges) copyFrom(o *edges) {
	copy(d.start, o.start)
	d.to = append(d.to[:0], o.to...)
	d.angle = append(d.angle[:0], o.angle...)
}

// Neighbours returns the centres that an edge joins to centre i, in growing order, and
// the local distances to them.
func (l *Layer) Neighbours(i int) (to []int32, angle []float32) {
	a, b := l.edges.start[i], l.edges.start[i+1]
	return l.edges.to[a:b], l.edges.angle[a:b]
}

// siblings returns the range of centres that share the parent of centre i.
func (l *Layer) siblings(i int) (lo, hi int) {
	p := l.Parent[i]
	for lo = i; lo > 0 && l.Parent[lo-1] == p; lo-- {
	}
	for hi = i + 1; hi < l.Used && l.Parent[hi] == p; hi++ {
	}
	return lo, hi
}

// linker joins the centres of a layer and finds the paths between siblings.
type linker struct {
	g          *Graph
	e          *kernel.Engine
	l          *Layer
	k          int // stride of l.dist
	neighbours int
	near       []int32   // (K, neighbours) nearest siblings in order of distance
	dots       []float32 // (K, neighbours)
	degree     []int32   // (K)
	heaps      []heap    // of each thread

	tiles tiles
	first int // of the siblings that Dijkstra is at

	nearBody, dijkstraBody func(worker, lo, hi int)
}

func (k *linker) init(g *Graph, most int) {
	k.g = g
	k.neighbours = min(g.options.Neighbours, most-1)
	k.near = make([]int32, most*k.neighbours)
	k.dots = make([]float32, most*k.neighbours)
	k.degree = make([]int32, most)
	k.nearBody, k.dijkstraBody = k.nearPart, k.dijkstraPart
	k.tiles.init()
}

// join makes the edges of l, the k nearest siblings of each centre and the union of both
// directions, and the paths between siblings.
func (k *linker) join(e *kernel.Engine, l *Layer) {
	k.e, k.l, k.k = e, l, len(l.Parent)
	e.For(l.Used, 8, k.nearBody)
	k.union()
	if k.g.metric.one() {
		angles(l.edges.angle)
	} else {
		vector.Scale(l.edges.angle, -1, l.edges.angle)
	}
	k.paths()
}

// nearPart finds the nearest siblings of centres, those of equal distance in order.
func (k *linker) nearPart(_, lo, hi int) {
	l, c, m := k.l, k.g.channels, k.neighbours
	for i := lo; i < hi; i++ {
		near, dots, n := k.near[i*m:(i+1)*m], k.dots[i*m:(i+1)*m], 0
		first, last := l.siblings(i)
		for j := first; j < last; j++ {
			if j == i {
				continue
			}
			x, y := l.Centres[i*c:(i+1)*c], l.Centres[j*c:(j+1)*c]
			var d float32
			if k.g.metric.one() {
				d = vector.Dot(x, y)
			} else {
				d = -k.g.metric.distance(x, y)
			}
			if n == m && (n == 0 || d <= dots[n-1]) {
				continue
			}
			at := min(n, m-1)
			for ; at > 0 && dots[at-1] < d; at-- {
				near[at], dots[at] = near[at-1], dots[at-1]
			}
			near[at], dots[at] = int32(j), d
			n = min(n+1, m)
		}
		for ; n < m; n++ {
			near[n] = -1
		}
	}
}

// union makes the lists of neighbours from near: each choice counts for both ends, once.
// angle holds cosines afterwards, or off one sphere distances below 0.
func (k *linker) union() {
	l := k.l
	d := &l.edges
	degree := k.degree[:l.Used]
	clear(degree)
	k.choices(func(i, j int, _ float32) {
		degree[i]++
		degree[j]++
	})
	clear(d.start)
	for i, n := range degree {
		d.start[i+1] = d.start[i] + n
	}
	for i := l.Used; i < len(d.start)-1; i++ {
		d.start[i+1] = d.start[i]
	}
	total := d.start[l.Used]
	d.to, d.angle = d.to[:total], d.angle[:total]
	clear(degree)
	add := func(i, j int, cos float32) {
		// Insertion keeps the list in growing order.
		base := int(d.start[i])
		at := base + int(degree[i])
		for ; at > base && d.to[at-1] > int32(j); at-- {
			d.to[at], d.angle[at] = d.to[at-1], d.angle[at-1]
		}
		d.to[at], d.angle[at] = int32(j), cos
		degree[i]++
	}
	k.choices(func(i, j int, cos float32) {
		add(i, j, cos)
		add(j, i, cos)
	})
}

// choices calls f once for each pair of which one has chosen the other.
func (k *linker) choices(f func(i, j int, cos float32)) {
	m := k.neighbours
	for i := range k.l.Used {
		for at, j := range k.near[i*m : (i+1)*m] {
			if j < 0 {
				break
			}
			if int(j) < i && k.chose(int(j), i) {
				continue // counted there
			}
			f(i, int(j), k.dots[i*m+at])
		}
	}
}

// chose says whether j is among the nearest siblings of i.
func (k *linker) chose(i, j int) bool {
	m := k.neighbours
	for _, n := range k.near[i*m : (i+1)*m] {
		if int(n) == j {
			return true
		}
	}
	return false
}

// paths finds the shortest paths between siblings, each group of them on its own.
func (k *linker) paths() {
	l, inf := k.l, float32(math.Inf(1))
	vector.Fill(l.dist, inf)
	for i := range k.k {
		l.dist[i*k.k+i] = 0
	}
	for lo := 0; lo < l.Used; {
		_, hi := l.siblings(lo)
		k.shortest(lo, hi)
		lo = hi
	}
}
