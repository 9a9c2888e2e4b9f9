package geodesic

import "github.com/geoalign/geoalign/internal/kernel"

// tile is the side of a block of Floyd: three tiles of float32 (48 KB) stay in a core's
// caches while each of their elements takes part in 64 steps.
const tile = 64

// Floyd replaces the lengths of edges in the n x n matrix d, rows stride apart, by the
// lengths of shortest paths: d[i][j] = min over k of d[i][k] + d[k][j], for one k after
// the other (Floyd 1962). No edge is +Inf, the diagonal is 0.
//
// It works on tiles: for each tile of intermediate points k first the tile on the
// diagonal, then the tiles of its row and column, then all others, each with all k of the
// tile while it is in the cache.
func Floyd(d []float32, n, stride int) {
	var t tiles
	t.d, t.n, t.stride = d, n, stride
	for k := 0; k < n; k += tile {
		t.cross(k)
		t.rest(0, 0, (n+tile-1)/tile)
	}
}

// tiles is Floyd on several threads: the tiles that are in no row or column with the
// diagonal tile do not depend on each other.
type tiles struct {
	d         []float32
	n, stride int
	k         int // first intermediate point of the tile
	body      func(worker, lo, hi int)
}

func (t *tiles) init() { t.body = t.rest }

func (t *tiles) floyd(e *kernel.Engine, d []float32, n, stride int) {
	t.d, t.n, t.stride = d, n, stride
	for k := 0; k < n; k += tile {
		t.cross(k)
		e.For((n+tile-1)/tile, 1, t.body)
	}
}

// cross does the tiles of row and column k.
func (t *tiles) cross(k int) {
	t.k = k
	t.relax(k, k)
	for j := 0; j < t.n; j += tile {
		if j != k {
			t.relax(k, j)
			t.relax(j, k)
		}
	}
}

// rest does the other tiles of tile rows [lo, hi).
func (t *tiles) rest(_, lo, hi int) {
	for i := lo * tile; i < min(hi*tile, t.n); i += tile {
		if i == t.k {
			continue
		}
		for j := 0; j < t.n; j += tile {
			if j != t.k {
				t.relax(i, j)
			}
		}
	}
}

// relax shortens the paths of the tile at (i, j) by way of the points of tile k.
func (t *tiles) relax(i, j int) {
	width := min(tile, t.n-j)
	for k := t.k; k < min(t.k+tile, t.n); k++ {
		via := t.d[k*t.stride+j:][:width]
		for r := i; r < min(i+tile, t.n); r++ {
			minPlus(t.d[r*t.stride+j:][:width], via, t.d[r*t.stride+k])
		}
	}
}

// minPlus sets dst = min(dst, a + x).
func minPlus(dst, x []float32, a float32) {
	x = x[:len(dst)]
	for i, v := range x {
		if v += a; v < dst[i] {
			dst[i] = v
		}
	}
}
