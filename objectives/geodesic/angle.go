package geodesic

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// DefaultLimit is the sum of angles at which a path is cut (Mei et al., section 3.5).
const DefaultLimit = 4 * math.Pi

// Score is the angle normalisation of Mei et al., section 3.4: the cosine of the path
// length theta (radians) cut at limit and scaled from [0, limit] to [0, pi]. It is 1 for
// a path of length 0 and -1 from limit on, and for points that no path joins (+Inf).
func Score(theta, limit float32) float32 {
	return float32(math.Cos(float64(min(theta, limit)) * math.Pi / float64(limit)))
}

// angles replaces cosines by angles in radians. Cosines are kept 1e-6 off -1 and 1, as
// where a gradient passes them, so that what is computed here equals
// what is computed there: the angle of a vector with itself is 0.0014.
func angles(cos []float32) { vector.Acos(cos, cos, vector.AcosLimit) }

// angle returns the angle of unit vectors.
func angle(x, y []float32) float32 {
	c := [1]float32{vector.Dot(x, y)}
	angles(c[:])
	return c[0]
}
