package eval

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// PreservedNeighbours is the number of neighbours that NeighbourRank follows, that of figure 1(b)
// of GeRA.
const PreservedNeighbours = 5

// NeighbourRank says how well a map keeps neighbourhoods (GeRA, figure 1b): the mean rank, from
// 1, that the k nearest neighbours of a row before the map have among its neighbours after it.
// before (n, D) and after (n, C) are rows in step, compared by cosine, or after the map by their
// distance where euclid is set, a row never with itself; rows that are equally near share the
// mean of their ranks. The neighbours of at most queries
// rows, evenly spaced, are followed among all n. It is (k+1)/2 where nothing changes, and n/2 by
// chance. It ends early with the error of ctx. Rows that are not finite are a *NonFiniteError.
func NeighbourRank(ctx context.Context, e *compute.Engine, before, after []float32, n, k, queries int,
	euclid bool) (float64, error) {
	if k < 1 || n < k+1 || queries < 1 || len(before)%n != 0 || len(after)%n != 0 {
		return 0, fmt.Errorf("eval: ranks of %d neighbours need more rows than that, and as many before as after (got %d rows, %d and %d numbers)", k, n, len(before), len(after))
	}
	d, c := len(before)/n, len(after)/n
	if err := checkFinite("the rows before the map", before, d); err != nil {
		return 0, err
	}
	if err := checkFinite("the rows after the map", after, c); err != nil {
		return 0, err
	}
	before = unitRows(before, d)
	squares := make([]float32, n) // of the lengths after the map, where they count
	if !euclid {
		after = unitRows(after, c)
	} else {
		after = centred(after, c)
		for j := range squares {
			squares[j] = float32(vector.SumSq(after[j*c:][:c]))
		}
	}
	queries = min(queries, n)
	const chunk = 128
	near, now := make([]float32, chunk*n), make([]float32, chunk*n)
	x, y := make([]float32, chunk*d), make([]float32, chunk*c)
	var sum float64
	for first := 0; first < queries; first += chunk {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		m := min(chunk, queries-first)
		for i := range m {
			row := (first + i) * n / queries
			copy(x[i*d:], before[row*d:][:d])
			copy(y[i*c:], after[row*c:][:c])
		}
		e.Gemm(false, true, m, n, d, 1, x, d, before, d, 0, near, n)
		e.Gemm(false, true, m, n, c, 1, y, c, after, c, 0, now, n)
		for i := range m {
			row := (first + i) * n / queries
			near[i*n+row] = -2 // below every cosine
			for j, s := range squares {
				now[i*n+j] -= s / 2 // |x|^2 / 2 less half of the squared distance
			}
			for _, j := range nearest(near[i*n:][:n], k) {
				sum += midRank(now[i*n:][:n], row, int(j.index))
			}
		}
	}
	return sum / float64(queries*k), nil
}

// centred returns rows of width d less their mean, times the power of two that brings the largest number near 1. Beside
// the lengths of rows that all lie far from the origin, the differences of their distances would be lost, and squares
// of large or small numbers beyond what float32 holds; which row is nearer is the same.
func centred(x []float32, d int) []float32 {
	mean, out := make([]float64, d), make([]float32, len(x))
	for i, v := range x {
		mean[i%d] += float64(v) * float64(d) / float64(len(x))
	}
	largest := 0.
	for i, v := range x {
		largest = max(largest, math.Abs(float64(v)-mean[i%d]))
	}
	_, exponent := math.Frexp(largest)
	for i, v := range x {
		out[i] = float32(math.Ldexp(float64(v)-mean[i%d], -exponent))
	}
	return out
}

// midRank is the rank of scores[j] from the largest, without that of self; equal ones share the
// mean of their ranks.
func midRank(scores []float32, self, j int) float64 {
	larger, equal := 0, 0
	for i, s := range scores {
		switch {
		case i == self:
		case s > scores[j]:
			larger++
		case s == scores[j]:
			equal++
		}
	}
	return float64(larger) + float64(equal+1)/2
}
