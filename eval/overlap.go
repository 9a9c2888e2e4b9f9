package eval

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/compute"
)

// NeighbourLists returns for each of n queries (n, D) its k nearest among n rows (n, D) by the cosine, the
// nearest first, as (n, k). The row of a query's own number does not count. It ends early with the error of ctx. Rows
// that are not finite are a *NonFiniteError.
func NeighbourLists(ctx context.Context, e *compute.Engine, queries, rows []float32, n, k int) ([]int32, error) {
	if k < 1 || n < k+1 || len(queries)%n != 0 || len(rows) != len(queries) {
		return nil, fmt.Errorf("eval: lists of %d neighbours need more rows than that, and as many queries of the same width (got %d rows, %d and %d numbers)", k, n, len(queries), len(rows))
	}
	d := len(rows) / n
	if err := checkFinite("the queries", queries, d); err != nil {
		return nil, err
	}
	if err := checkFinite("the rows that are searched", rows, d); err != nil {
		return nil, err
	}
	queries, rows = unitRows(queries, d), unitRows(rows, d)
	return ScoredLists(n, k, func(first, m int, dst []float32) error {
		e.Gemm(false, true, m, n, d, 1, queries[first*d:], d, rows, d, 0, dst, n)
		return ctx.Err()
	})
}

// ScoredLists is NeighbourLists by other scores: source writes those of queries first to first+m-1 with all n rows, (m,
// n), and may be asked for up to 256 queries at a time. A score of NaN is a *NonFiniteError.
func ScoredLists(n, k int, source Source) ([]int32, error) {
	if k < 1 || n < k+1 {
		return nil, fmt.Errorf("eval: lists of %d neighbours need more rows than that (got %d)", k, n)
	}
	const chunk = 256
	scores, lists := make([]float32, min(chunk, n)*n), make([]int32, 0, n*k)
	for first := 0; first < n; first += chunk {
		m := min(chunk, n-first)
		if err := source(first, m, scores[:m*n]); err != nil {
			return nil, err
		}
		for i := range m {
			row := scores[i*n:][:n]
			if j := firstNaN(row); j >= 0 {
				return nil, nanScore(j, first+i)
			}
			row[first+i] = float32(math.Inf(-1))
			for _, c := range nearest(row, k) {
				lists = append(lists, c.index)
			}
		}
	}
	return lists, nil
}

// ListOverlap returns the share of the entries of lists of length k that another set of lists has too, list by
// list: the recall of the second where the first are right. Of no lists it is 0.
func ListOverlap(right, found []int32, k int) float64 {
	if k < 1 || len(right) == 0 {
		return 0
	}
	common := 0
	for at := 0; at+k <= len(right); at += k {
		for _, x := range right[at : at+k] {
			for _, y := range found[at : at+k] {
				if x == y {
					common++
				}
			}
		}
	}
	return float64(common) / float64(len(right))
}
