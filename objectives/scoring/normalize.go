package scoring

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel"
)

// Normalize scales a row to unit length.
func Normalize(row []float32) {
	s := float32(1 / max(math.Sqrt(kernel.SumSq(row)), 1e-12))
	kernel.Scale(row, s, row)
}
