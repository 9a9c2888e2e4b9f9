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

// check refuses a metric that is none.
func (m Metric) check() error {
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

// score returns the score of two rows, summed in float64. lengthX and lengthY are their squared
// lengths, which the cosine reads.
func (m Metric) score(x, y []float32, lengthX, lengthY float64) float32 {
	switch m {
	case L2:
		return -float32(math.Sqrt(vector.SquaredDistance(x, y)))
	case Cosine:
		return float32(max(-1, min(1, float64(vector.Dot(x, y))/math.Sqrt(lengthX*lengthY))))
	}
	return vector.Dot(x, y)
}

// maxLength is the largest squared length of a row: products of longer ones are beyond
// float32.
const maxLength = 1e37

// checkRow returns the squared length of a row, or an error that says what is wrong with it
// and begins with name.
func (m Metric) checkRow(name string, row []float32) (float64, error) {
	sq := vector.SumSq(row)
	switch {
	case sq-sq != 0:
		for i, v := range row {
			if v-v != 0 {
				return 0, fmt.Errorf("search: %s is not finite (got %v in column %d): compute it again or leave it out", name, v, i)
			}
		}
		fallthrough
	case sq > maxLength:
		return 0, fmt.Errorf("search: %s has length %.3g, more than products in float32 can hold: scale the rows down", name, math.Sqrt(sq))
	case sq == 0 && m == Cosine:
		return 0, fmt.Errorf("search: %s is zero and has no direction: leave it out, or search by inner or l2", name)
	}
	return sq, nil
}
