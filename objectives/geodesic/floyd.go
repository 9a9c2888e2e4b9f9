package geodesic

import (
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// tile is the number of intermediate points that Floyd takes at a time. Their rows, 64 KB
// at the default 256 centres, stay in a core's second-level cache and each other row in its
// first-level one for as many steps.
const tile = 64

// Floyd replaces the lengths of edges in the n x n matrix d, rows stride apart, by the
// lengths of shortest paths: d[i][j] = min over k of d[i][k] + d[k][j], for one k after
// the other (Floyd 1962). No edge is +Inf, the diagonal is 0.
//
// The points k are taken in tiles, since row i only needs them to be through with each
// other: first the rows of the tile, then each other row by itself.
func Floyd(d []float32, n, stride int) {
	t := tiles{d: d, n: n, stride: stride}
	for ; t.k < n; t.k += tile {
		t.within()
		t.others(0, 0, n)
	}
}

// tiles is Floyd on several threads.
type tiles struct {
	d         []float32
	n, stride int
	k         int // first point of the tile
	body      func(worker, lo, hi int)
}

func (t *tiles) init() { t.body = t.others }

func (t *tiles) floyd(e *kernel.Engine, d []float32, n, stride int) {
	t.d, t.n, t.stride = d, n, stride
	for t.k = 0; t.k < n; t.k += tile {
		t.within()
		e.For(n, tile/2, t.body)
	}
}

// within shortens the paths from the points of the tile by way of each other.
func (t *tiles) within() {
	end := min(t.k+tile, t.n)
	for k := t.k; k < end; k++ {
		for i := t.k; i < end; i++ {
			if i != k {
				t.relax(i, k, 0, t.n)
			}
		}
	}
}

// others shortens the paths from the points [lo, hi) outside the tile by way of the tile:
// first those into the tile, on which the rest depends.
func (t *tiles) others(_, lo, hi int) {
	end := min(t.k+tile, t.n)
	for i := lo; i < hi; i++ {
		if i >= t.k && i < end {
			continue
		}
		for k := t.k; k < end; k++ {
			t.relax(i, k, t.k, end)
		}
		for k := t.k; k < end; k++ {
			t.relax(i, k, 0, t.k)
			t.relax(i, k, end, t.n)
		}
	}
}

// relax shortens the paths from i to [from, to) by way of k.
func (t *tiles) relax(i, k, from, to int) {
	if from < to {
		vector.MinPlus(t.d[i*t.stride+from:i*t.stride+to], t.d[k*t.stride+from:k*t.stride+to], t.d[i*t.stride+k])
	}
}
