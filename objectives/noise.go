package objectives

import (
	"math"
	"math/rand/v2"
)

// gumbel draws from the standard Gumbel distribution.
func gumbel(r *rand.Rand) float32 { return float32(-math.Log(r.ExpFloat64() + 1e-30)) }

// uniform draws from (0, 1).
func uniform(r *rand.Rand) float32 { return (float32(r.Uint32()>>9) + 0.5) / (1 << 23) }
