package geodesic

import "math"

// heap is a binary heap of centres by distance that knows where each centre is.
type heap struct {
	nodes []int32
	at    []int32 // position of each centre in nodes, -1 if it is not there
}

// push adds node i or moves it up after its distance has fallen.
func (h *heap) push(i int32, dist []float32) {
	p := h.at[i]
	if p < 0 {
		p = int32(len(h.nodes))
		h.nodes = append(h.nodes, i)
	}
	d := dist[i]
	for p > 0 {
		up := (p - 1) / 2
		n := h.nodes[up]
		if dist[n] <= d {
			break
		}
		h.nodes[p], h.at[n] = n, p
		p = up
	}
	h.nodes[p], h.at[i] = i, p
}

// pop takes the nearest node out.
func (h *heap) pop(dist []float32) int32 {
	top := h.nodes[0]
	h.at[top] = -1
	last := len(h.nodes) - 1
	i := h.nodes[last]
	h.nodes = h.nodes[:last]
	if last == 0 {
		return top
	}
	d, p := dist[i], 0
	for {
		c := 2*p + 1
		if c >= last {
			break
		}
		if c+1 < last && dist[h.nodes[c+1]] < dist[h.nodes[c]] {
			c++
		}
		n := h.nodes[c]
		if dist[n] >= d {
			break
		}
		h.nodes[p], h.at[n] = n, int32(p)
		p = c
	}
	h.nodes[p], h.at[i] = i, int32(p)
	return top
}

// dijkstra sets dist, +Inf but 0 at from, to the lengths of the shortest paths from from
// (Dijkstra 1959).
func (h *heap) dijkstra(d *edges, from int32, dist []float32) {
	h.nodes = h.nodes[:0]
	h.push(from, dist)
	for len(h.nodes) > 0 {
		i := h.pop(dist)
		near := dist[i]
		for e := d.start[i]; e < d.start[i+1]; e++ {
			if j := d.to[e]; near+d.angle[e] < dist[j] {
				dist[j] = near + d.angle[e]
				h.push(j, dist)
			}
		}
	}
}

// Costs in nanoseconds on one thread: in Floyd of bringing one row up to date with one
// point, and of each element of that row; in Dijkstra of looking at one edge, and of taking
// one node out per level of the heap. From BenchmarkPaths on a 2.7 GHz core with AVX-512.
const (
	floydRow     = 8
	floydStep    = .056
	dijkstraEdge = 2
	dijkstraNode = 10.5
)

// sparse says whether Dijkstra from each of n centres with the given entries in their
// lists of neighbours is cheaper than Floyd: with 8 neighbours from about 2,300 centres on.
func sparse(n, entries int) bool {
	x := float64(n)
	return dijkstraEdge*float64(entries)+dijkstraNode*x*math.Log2(x+1) < x*(floydRow+floydStep*x)
}

// shortest finds the shortest paths between the siblings [lo, hi) of the layer, whose part
// of dist is empty.
func (k *linker) shortest(lo, hi int) {
	l, n := k.l, hi-lo
	if sparse(n, int(l.edges.start[hi]-l.edges.start[lo])) {
		k.reserve()
		k.first = lo
		k.e.For(n, 4, k.dijkstraBody)
	} else {
		for i := lo; i < hi; i++ {
			to, angle := l.Neighbours(i)
			for e, j := range to {
				l.dist[i*k.k+int(j)] = angle[e]
			}
		}
		k.tiles.floyd(k.e, l.dist[lo*k.k+lo:], n, k.k)
	}
	// The sums of a path from its two ends may differ by rounding: keep one of them.
	for i := lo; i < hi; i++ {
		for j := lo; j < i; j++ {
			l.dist[i*k.k+j] = l.dist[j*k.k+i]
		}
	}
}

// reserve makes a heap for each thread.
func (k *linker) reserve() {
	for len(k.heaps) < k.e.Threads() {
		k.heaps = append(k.heaps, heap{})
	}
	for i := range k.heaps {
		h := &k.heaps[i]
		if cap(h.nodes) < k.k {
			h.nodes, h.at = make([]int32, 0, k.k), make([]int32, k.k)
		}
		for j := range h.at {
			h.at[j] = -1
		}
	}
}

func (k *linker) dijkstraPart(worker, lo, hi int) {
	for i := k.first + lo; i < k.first+hi; i++ {
		k.heaps[worker].dijkstra(&k.l.edges, int32(i), k.l.dist[i*k.k:(i+1)*k.k])
	}
}
