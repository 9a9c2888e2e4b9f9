package scoring

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Normalize scales a row to unit length.
func Normalize(row []float32) {
	s := float32(1 / max(math.Sqrt(vector.SumSq(row)), 1e-12))
	vector.Scale(row, s, row)
}
