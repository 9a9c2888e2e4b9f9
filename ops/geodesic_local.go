package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// Local is the metric by which a graph measures near points: that of the topology of a
// head. The zero value is the angle on one sphere.
type Local struct {
	// Spheres m is the number of equal groups of channels that are unit vectors each; 0 is
	// 1. The distance is sqrt(sum_k arccos^2(x_k . y_k)), in radians.
	Spheres int
	// Euclid takes |x-y| of rows of any length, in the unit of the features.
	Euclid bool
}

// one says whether this is the angle on one sphere.
func (l Local) one() bool { return !l.Euclid && l.Spheres <= 1 }

func (l Local) args() string {
	if l.one() {
		return ""
	}
	return fmt.Sprintf(" spheres=%d euclid=%t", max(l.Spheres, 1), l.Euclid)
}

// check looks at rows of width channels.
func (l Local) check(width int) error {
	return all(
		need(l.Spheres >= 0, "spheres must not be below 0 (got %d)", l.Spheres),
		need(!l.Euclid || l.Spheres <= 1, "Euclidean features have no spheres (got %d)", l.Spheres),
		need(width%max(l.Spheres, 1) == 0, "%d channels do not divide into %d spheres", width, l.Spheres),
	)
}

// mean is the factor of the dot product that makes it the mean cosine of the spheres.
func (l Local) mean() float32 { return 1 / float32(max(l.Spheres, 1)) }

// distance returns the distance of x and y; NaN where one is not finite.
func (l Local) distance(x, y []float32) float32 {
	if l.Euclid {
		return float32(math.Sqrt(kernel.SquaredDistance(x, y)))
	}
	return kernel.ProductAngle(x, y, max(l.Spheres, 1))
}

// addGradient adds g times the gradient by x of the distance d of x and y to dx. Spheres
// whose cosine is beyond AcosLimit add nothing, nor do Euclidean points that coincide.
func (l Local) addGradient(dx []float32, g float32, x, y []float32, d float32) {
	switch {
	case g == 0 || d == 0:
	case l.Euclid:
		s := g / d
		for i, v := range x {
			dx[i] += s * (v - y[i])
		}
	default:
		kernel.ProductAngleGrad(dx, g, x, y, max(l.Spheres, 1), d)
	}
}

// euclidGradient returns df (B, C) of scores -|f-x_j| pi/limit with the gradient dy (B, N):
// that of StraightThrough for Euclidean features.
func euclidGradient(f, dy *gorgonia.Node, p Pool, limit float32) *gorgonia.Node {
	at, in := p.operands(gorgonia.Nodes{f})
	x := &distance{Distance: Distance{Kind: "l2"}, layout: poolLayout{at}}
	scores := apply(x.forward("pool negative distance", in, -1), in...)
	df := apply(x.backward("pool negative distance df", len(in), 0), append(in, scores, dy)...)
	return times(math.Pi/limit, df)
}
