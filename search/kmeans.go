package search

import (
	"context"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// kmeans divides points into cells: a point belongs to the centre of least distance, which is
// that of largest x . c - |c|^2 / 2, and a centre is the mean of its points (Lloyd). Results do
// not depend on the number of threads: chunks are of one size, and sums are split by column.
//
// It is not that of objectives/geodesic, which clusters a queue for a graph: seeds with care,
// knows spheres and keeps centres apart. Here cells only have to be about equal, and centres
// are the means that codes are differences from.
type kmeans struct {
	e       *compute.Engine
	d       int
	cells   int
	centres []float32 // (C, D)
	half    []float32 // (C) half the squared lengths
	scores  [][]float32
	chunk   int
}

// chunkProducts is how many products with centres a thread makes before it looks for the
// largest: 1 MB.
const chunkProducts = 1 << 18

// iterations of k-means: further ones move a few rows to another cell.
const iterations = 10

// newKMeans begins with points of x (n, D) at even distances as centres.
func newKMeans(e *compute.Engine, x []float32, d, cells int) *kmeans {
	k := &kmeans{e: e, d: d, cells: cells, centres: make([]float32, cells*d), half: make([]float32, cells)}
	k.chunk = min(max(chunkProducts/cells, 16), 1024)
	k.scores = make([][]float32, e.Threads())
	n := len(x) / d
	for c := range cells {
		copy(k.centres[c*d:(c+1)*d], x[spread(c, cells, n)*d:])
	}
	k.measure()
	return k
}

// measure sets half.
func (k *kmeans) measure() {
	for c := range k.cells {
		k.half[c] = float32(vector.SumSq(k.centres[c*k.d:(c+1)*k.d]) / 2)
	}
}

// train moves the centres to those of x (n, D).
func (k *kmeans) train(ctx context.Context, x []float32, r *rand.Rand, progress func(done int)) error {
	n := len(x) / k.d
	owner, counts := make([]int32, n), make([]int32, k.cells)
	chunks := (n + k.chunk - 1) / k.chunk
	for i := range iterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		k.e.For(chunks, 1, func(worker, lo, hi int) {
			for c := lo; c < hi; c++ {
				from, to := c*k.chunk, min((c+1)*k.chunk, n)
				k.assign(worker, x[from*k.d:to*k.d], owner[from:to])
			}
		})
		k.update(x, owner, counts)
		k.fill(x, owner, counts, r)
		k.measure()
		progress(i + 1)
	}
	return nil
}

// assign sets owner to the cells of up to chunk points x.
func (k *kmeans) assign(worker int, x []float32, owner []int32) {
	if k.scores[worker] == nil {
		k.scores[worker] = make([]float32, k.chunk*k.cells)
	}
	scores := k.scores[worker]
	k.e.GemmSerial(false, true, len(owner), k.cells, k.d, 1, x, k.d, k.centres, k.d, 0, scores, k.cells)
	for i := range owner {
		row := scores[i*k.cells:][:k.cells]
		vector.Sub(row, row, k.half)
		owner[i] = int32(vector.ArgMax(row))
	}
}

// update makes the centres the means of their points, and counts these. The centre of an empty
// cell stays.
func (k *kmeans) update(x []float32, owner, counts []int32) {
	clear(counts)
	for _, c := range owner {
		counts[c]++
	}
	k.e.For(k.d, 16, func(_, lo, hi int) {
		for c, n := range counts {
			if n > 0 {
				clear(k.centres[c*k.d+lo : c*k.d+hi])
			}
		}
		for i, c := range owner {
			sum := k.centres[int(c)*k.d+lo : int(c)*k.d+hi]
			vector.Add(sum, sum, x[i*k.d+lo:i*k.d+hi])
		}
		for c, n := range counts {
			if n > 0 {
				sum := k.centres[c*k.d+lo : c*k.d+hi]
				vector.Scale(sum, 1/float32(n), sum)
			}
		}
	})
}

// fill gives each empty cell a point at random of a cell that is drawn by its number of points.
func (k *kmeans) fill(x []float32, owner, counts []int32, r *rand.Rand) {
	for c, n := range counts {
		if n == 0 {
			i := r.IntN(len(owner))
			copy(k.centres[c*k.d:(c+1)*k.d], x[i*k.d:(i+1)*k.d])
		}
	}
}
