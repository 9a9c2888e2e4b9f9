package geodesic

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// metric is the local metric of a graph: that of the topology of the features (clip-mtob,
// table 1). Two measures belong to it. The likeness finds the
// nearest centre: on m spheres the mean of their cosines, 1 - chord^2/2m, and of Euclidean
// rows -|x-y|^2. The distance is what paths are made of: sqrt(sum_k arccos^2(x_k . y_k)),
// or |x-y|. On one sphere both order points alike; on several the nearest by chord need
// not be the nearest by distance.
type metric struct {
	spheres int
	euclid  bool
}

func (m metric) one() bool { return m.spheres == 1 && !m.euclid }

// distance returns the local distance of x and y.
func (m metric) distance(x, y []float32) float32 {
	switch {
	case m.euclid:
		return float32(math.Sqrt(vector.SquaredDistance(x, y)))
	case m.spheres > 1:
		return vector.ProductAngle(x, y, m.spheres)
	}
	return angle(x, y)
}

// likeness returns what is largest for the nearest of several points.
func (m metric) likeness(x, y []float32) float32 {
	switch {
	case m.euclid:
		return float32(-vector.SquaredDistance(x, y))
	case m.spheres > 1:
		return vector.Dot(x, y) / float32(m.spheres)
	}
	return vector.Dot(x, y)
}

// tie is the difference of likenesses to x that counts as none beside the likeness best. A
// Euclidean point of length L is known to a share of L, and its squared distance d^2 from
// another to that share of 2dL.
func (m metric) tie(best float32, x []float32) float32 {
	if m.euclid && !math.IsInf(float64(best), 0) {
		sq := -float64(best)
		return float32(tie * (sq + math.Sqrt(sq*vector.SumSq(x))))
	}
	return tie
}

// fits says whether x may be a point.
func (m metric) fits(x []float32) bool { return m.fault(x) < 0 }

// fault returns the first group of channels of x that is not a unit vector, or 0 for a
// Euclidean row that is not finite; -1 without a fault.
func (m metric) fault(x []float32) int {
	if m.euclid {
		if s := vector.SumSq(x); math.IsNaN(s) || math.IsInf(s, 0) {
			return 0
		}
		return -1
	}
	n := len(x) / m.spheres
	for k := range m.spheres {
		if s := vector.SumSq(x[k*n : (k+1)*n]); !(math.Abs(s-1) <= unitTolerance) {
			return k
		}
	}
	return -1
}

// explain says what is wrong with row j.
func (m metric) explain(x []float32, j int) error {
	k, n := m.fault(x), len(x)/m.spheres
	where := fmt.Sprintf("row %d", j)
	if m.spheres > 1 {
		where += fmt.Sprintf(", sphere %d", k)
	}
	switch s := vector.SumSq(x[k*n : (k+1)*n]); {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return fmt.Errorf("%s is not finite: find where the NaN or infinity came from", where)
	case s == 0:
		return fmt.Errorf("%s is zero: fill every row with a unit vector before the graph is built", where)
	default:
		return fmt.Errorf("%s has length %.4g: divide rows by their length", where, math.Sqrt(s))
	}
}
