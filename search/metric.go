package search

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Metric says how near a row is to a query. Its scores are those of the same name in package
// objectives/scoring; the larger, the nearer.
type Metric string

// Metrics.
const (
	Cosine Metric = "cosine" // x . y / (|x| |y|)
	Inner  Metric = "inner"  // x . y
	L2     Metric = "l2"     // -|x - y|
)

// Check refuses a metric that is none.
func (m Metric) Check() error {
	switch m {
	case Cosine, Inner, L2:
		return nil
	}
	return fmt.Errorf("search: no metric %q: choose cosine, inner or l2", string(m))
}

// checkMetric refuses another metric than the index's.
func (x *Index) checkMetric(m Metric) error {
	if m != "" && m != x.metric {
		return fmt.Errorf("search: the index was built for the metric %s (got %q): leave it out, or build another index", x.metric, string(m))
	}
	return nil
}

// score returns the score of two rows, summed in float64. lengthX is the squared length of x,
// which the cosine reads.
func (m Metric) score(x, y []float32, lengthX float64) float32 {
	switch m {
	case L2:
		return -float32(math.Sqrt(vector.SquaredDistance(x, y)))
	case Cosine:
		length := math.Sqrt(lengthX * vector.SumSq(y))
		dot := float64(vector.Dot(x, y))
		if length < shortest {
			dot = 0
			for c, v := range x {
				dot += float64(v) * float64(y[c])
			}
		}
		return float32(max(-1, min(1, dot/length)))
	}
	return vector.Dot(x, y)
}

// shortest is the product of two lengths below which that of their rows loses digits in float32.
const shortest = 1e-30

// maxLength is the largest squared length of a row: products of longer ones are beyond
// float32.
const maxLength = 1e37

// checkRow returns the squared length of row i of what, the pool or the queries, as a point, or
// an error that says what is wrong with it.
func (m Metric) checkRow(what string, i int, row []float32) (float64, error) {
	sq := vector.SumSq(row)
	if sq <= maxLength && (sq > 0 || m != Cosine) {
		return sq, nil
	}
	for c, v := range row {
		if v-v != 0 {
			return 0, fmt.Errorf("search: row %d of the %s is not finite (got %v in column %d): compute it again or leave it out", i, what, v, c)
		}
	}
	if sq == 0 {
		return 0, fmt.Errorf("search: row %d of the %s is zero and has no direction for a cosine: leave it out, or compare by distance with trainer search --metric l2", i, what)
	}
	return 0, fmt.Errorf("search: row %d of the %s has length %.3g, more than products in float32 can hold: scale the rows down", i, what, math.Sqrt(sq))
}
