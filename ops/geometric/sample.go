package geometric

import (
	"fmt"
	"math"
)

// Laws by which neighbours are drawn, without replacement, from the nearest M.
const (
	Closest = "closest" // the first ones
	Uniform = "uniform" // each as likely
	Biased  = "biased"  // in each draw proportional to 1/(1+rank), rank 0 being the nearest
)

// CheckSampling returns an error for an unknown law.
func CheckSampling(law string) error {
	switch law {
	case Closest, Uniform, Biased:
		return nil
	}
	return fmt.Errorf("geometric: unknown sampling %q: choose %s, %s or %s", law, Closest, Uniform, Biased)
}

// SampleKey is the number by which the neighbour of the given rank takes part in a draw:
// those with the largest keys are drawn. u is uniform in (0, 1). For Biased it is the
// logarithm of the weight plus a Gumbel variable, so that the largest keys are a draw
// without replacement in proportion to the weights (Kool et al. 2019, section 3).
func SampleKey(law string, rank int, u float32) float64 {
	switch law {
	case Uniform:
		return float64(u)
	case Biased:
		return -math.Log1p(float64(rank)) - math.Log(-math.Log(float64(u)))
	default:
		return -float64(rank)
	}
}
