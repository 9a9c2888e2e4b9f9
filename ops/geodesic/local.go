package geodesic

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/pool"
	"github.com/geoalign/geoalign/ops/similarity"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// local is the metric by which a graph measures near points, the distance of a space.
type local struct{ space.Space }

func (l local) args() string {
	if l.One() {
		return ""
	}
	return fmt.Sprintf(" spheres=%d euclid=%t", l.Groups(), l.Euclid)
}

// mean is the factor of the dot product that makes it the mean cosine of the spheres.
func (l local) mean() float32 { return 1 / float32(l.Groups()) }

// distance returns the distance of x and y; NaN where one is not finite.
func (l local) distance(x, y []float32) float32 {
	if l.Euclid {
		return float32(math.Sqrt(vector.SquaredDistance(x, y)))
	}
	return vector.ProductAngle(x, y, l.Groups())
}

// addGradient adds g times the gradient by x of the distance d of x and y to dx. Spheres
// whose cosine is beyond AcosLimit add nothing, nor do Euclidean points that coincide.
func (l local) addGradient(dx []float32, g float32, x, y []float32, d float32) {
	switch {
	case g == 0 || d == 0:
	case l.Euclid:
		s := g / d
		for i, v := range x {
			dx[i] += s * (v - y[i])
		}
	default:
		vector.ProductAngleGrad(dx, g, x, y, l.Groups(), d)
	}
}

// euclidGradient returns df (B, C) of scores -|f-x_j| pi/limit with the gradient dy (B, N):
// that of StraightThrough for Euclidean features.
func euclidGradient(f, dy *gorgonia.Node, p pool.Pool, limit float32) *gorgonia.Node {
	return arith.Times(math.Pi/limit, similarity.PoolDistanceGradient(similarity.Distance{Kind: "l2"}, f, dy, p))
}
