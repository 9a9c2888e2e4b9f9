package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/topk"
)

// neighbourTemperature weighs the votes of neighbours (Wu et al. 2018, eq. 12).
const neighbourTemperature = 0.07

// NearestNeighbours classifies each of m features y (m, D) by its k nearest among n
// features x (n, D) with their classes: by cosine, each vote with the weight
// exp(cosine/0.07) (Wu et al. 2018, section 3.4). k is at most n; equal votes go to the
// lower class. It ends early with the error of ctx. Features that are not finite are a *NonFiniteError.
func NearestNeighbours(ctx context.Context, e *compute.Engine, x []float32, labels []int32, classes int, y []float32, m,
	k int) ([]int32, error) {
	if err := checkRows("nearest neighbours", x, labels, classes); err != nil {
		return nil, err
	}
	n := len(labels)
	d := len(x) / n
	if m < 1 || len(y) != m*d || k < 1 {
		return nil, fmt.Errorf("eval: nearest neighbours: want k >= 1 and features of width %d (got k = %d and %d values for %d rows)", d, k, len(y), m)
	}
	if err := checkFinite("the rows to classify", y, d); err != nil {
		return nil, err
	}
	k = min(k, n)
	x, y = unitRows(x, d), unitRows(y, d)
	const chunk = 256
	scores := make([]float32, chunk*n)
	out := make([]int32, m)
	votes := make([]float64, classes)
	for first := 0; first < m; first += chunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows := min(chunk, m-first)
		e.Gemm(false, true, rows, n, d, 1, y[first*d:], d, x, d, 0, scores, n)
		for i := range rows {
			row := scores[i*n:][:n]
			clear(votes)
			for _, c := range nearest(row, k) {
				votes[labels[c.index]] += math.Exp(float64(c.score) / neighbourTemperature)
			}
			out[first+i] = int32(slices.Index(votes, slices.Max(votes)))
		}
	}
	return out, nil
}

// nearest returns the k largest scores, of equal ones the lower indices first.
func nearest(scores []float32, k int) []candidate {
	l := topk.New[candidate](k)
	for j, s := range scores {
		l.Add(candidate{index: int32(j), score: s})
	}
	return l.Sorted()
}

// unitRows returns rows of width d scaled to length 1; a row of zeros stays.
func unitRows(x []float32, d int) []float32 {
	out := make([]float32, len(x))
	for i := 0; i < len(x); i += d {
		var s float64
		for _, v := range x[i:][:d] {
			s += float64(v) * float64(v)
		}
		if s > 0 {
			s = 1 / math.Sqrt(s)
		}
		for j, v := range x[i:][:d] {
			out[i+j] = float32(float64(v) * s)
		}
	}
	return out
}

// Accuracy returns the percentage of predictions that are right.
func Accuracy(predicted, labels []int32) float64 {
	right := 0
	for i, p := range predicted {
		if p == labels[i] {
			right++
		}
	}
	return 100 * float64(right) / float64(max(1, len(predicted)))
}

// Commonest returns the class that most labels have, the lowest of several.
func Commonest(labels []int32, classes int) int32 {
	count := make([]int, classes)
	for _, l := range labels {
		count[l]++
	}
	return int32(slices.Index(count, slices.Max(count)))
}
