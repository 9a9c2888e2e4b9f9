package vector

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// AcosLimit is how near to -1 and 1 cosines may come before an angle is taken of them
// where its gradient is wanted, which is infinite at the ends.
const AcosLimit = 1 - 1e-6

// Acos sets dst = acos(x) in radians, within 2 ulp, for x limited to [-limit, limit].
// limit is in [0, 1]: 1 for all angles, so that a cosine that rounding has taken out of
// its range gives 0 or pi; AcosLimit where AcosGrad follows. NaN gives NaN.
func Acos(dst, x []float32, limit float32) {
	n := len(dst)
	px := at(x, n)
	if !cpu.HasVectors {
		plainAcos(dst, x, limit)
		return
	}
	acosVec(at(dst, n), px, n, limit)
}

// AcosGrad sets dx = -dy / sqrt(1-x^2), the gradient of Acos, and 0 where |x| > limit, as
// for a value that a clamp has replaced by a constant. dx may be the same slice as x or
// dy.
func AcosGrad(dx, x, dy []float32, limit float32) {
	n := len(dx)
	px, pdy := at(x, n), at(dy, n)
	if !cpu.HasVectors {
		plainAcosGrad(dx, x, dy, limit)
		return
	}
	acosGradVec(at(dx, n), px, pdy, n, limit)
}

func plainAcos(dst, x []float32, limit float32) {
	for i, v := range x[:len(dst)] {
		if v == v {
			v = max(-limit, min(v, limit))
		}
		dst[i] = float32(math.Acos(float64(v)))
	}
}

func plainAcosGrad(dx, x, dy []float32, limit float32) {
	for i, v := range x[:len(dx)] {
		if v > limit || v < -limit {
			dx[i] = 0
			continue
		}
		dx[i] = float32(-float64(dy[i]) / math.Sqrt(1-float64(v)*float64(v)))
	}
}
