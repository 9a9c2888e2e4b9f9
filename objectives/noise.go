package objectives

import (
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute/feed"
)

// gumbel draws from the standard Gumbel distribution.
func gumbel(r *rand.Rand) float32 { return float32(-math.Log(r.ExpFloat64() + 1e-30)) }

// uniform draws from (0, 1).
func uniform(r *rand.Rand) float32 { return (float32(r.Uint32()>>9) + 0.5) / (1 << 23) }

// fillNoise fills dst, so many rows, with this process's share of what draw gives for the
// rows of the global batch.
func fillNoise(dst []float32, rows int, r *rand.Rand, f *feed.Step, draw func(*rand.Rand) float32) {
	lo, hi, all := f.Share(rows)
	width := len(dst) / rows
	for i := range all * width {
		v := draw(r)
		if i >= lo*width && i < hi*width {
			dst[i-lo*width] = v
		}
	}
}
