package ops

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
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
		n := len(x) / max(l.Spheres, 1)
		var c, a, s [1]float32
		for lo := 0; lo < len(x); lo += n {
			c[0] = finite(kernel.Dot(x[lo:lo+n], y[lo:lo+n]))
			kernel.Acos(a[:], c[:], kernel.AcosLimit)
			s[0] = g * a[0] / d
			kernel.AcosGrad(s[:], c[:], s[:], kernel.AcosLimit)
			if s[0] != 0 {
				kernel.Axpy(dx[lo:lo+n], s[0], y[lo:lo+n])
			}
		}
	}
}

// euclidGradient returns df (B, C) of scores -|f-x_j| pi/limit with the gradient dy (B, N):
// that of StraightThrough for Euclidean features.
func euclidGradient(f, dy *gorgonia.Node, p Pool, limit float32) *gorgonia.Node {
	at, in := p.operands(gorgonia.Nodes{f, dy})
	return apply(&op{
		kind: "pool distance df", args: fmt.Sprintf("%s limit=%g", at.args(), limit), diff: make([]bool, len(in)),
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 2, "want f (B, C)"); err != nil {
				return nil, err
			}
			if err := at.check(in, in[0][1]); err != nil {
				return nil, err
			}
			return in[0].Clone(), wantShape(in, 1, "dy", in[0][0], in[at.queue][0])
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			s, l, width, total := new(poolState), Local{Euclid: true}, c.In[0].Dim(1), c.In[at.queue].Dim(0)
			body := func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					x, out := c.In[0].F32[i*width:(i+1)*width], c.Out.F32[i*width:(i+1)*width]
					clear(out)
					for j, g := range c.In[1].F32[i*total : i*total+s.cols] {
						if g != 0 {
							y := s.feature(c, at, j)
							l.addGradient(out, -g*math.Pi/limit, x, y, l.distance(x, y))
						}
					}
				}
			}
			return func() error {
				if err := s.read(c, at); err != nil {
					return err
				}
				c.Engine.For(c.Out.Dim(0), 1, body)
				return nil
			}, nil
		},
	}, in...)
}
