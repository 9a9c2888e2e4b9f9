package vector

import "math"

// ProductAngle returns the geodesic distance of x and y on a product of spheres,
// sqrt(sum_k arccos^2(x_k . y_k)) in radians over equal groups of channels, with cosines
// limited to [-AcosLimit, AcosLimit]. A cosine that is not finite gives NaN.
func ProductAngle(x, y []float32, spheres int) float32 {
	var cosines [32]float32
	n := len(x) / spheres
	var s float64
	for from := 0; from < spheres; from += len(cosines) {
		a := cosines[:min(len(cosines), spheres-from)]
		groupCosines(a, x[from*n:], y[from*n:], n)
		Acos(a, a, AcosLimit)
		for _, v := range a {
			s += float64(v) * float64(v)
		}
	}
	return float32(math.Sqrt(s))
}

// ProductAngleGrad adds g times the gradient for x of the distance d of ProductAngle to dx.
// Spheres whose cosine is beyond AcosLimit add nothing.
//
//	dd/dx_k = -arccos(c_k) / (d sqrt(1 - c_k^2)) y_k,  c_k = x_k . y_k
func ProductAngleGrad(dx []float32, g float32, x, y []float32, spheres int, d float32) {
	var cosines, angles [32]float32
	n := len(x) / spheres
	g /= d
	for from := 0; from < spheres; from += len(cosines) {
		c := cosines[:min(len(cosines), spheres-from)]
		a := angles[:len(c)]
		groupCosines(c, x[from*n:], y[from*n:], n)
		Acos(a, c, AcosLimit)
		Scale(a, g, a)
		AcosGrad(a, c, a, AcosLimit)
		for k, v := range a {
			if v != 0 {
				lo := (from + k) * n
				Axpy(dx[lo:lo+n], v, y[lo:lo+n])
			}
		}
	}
}

// groupCosines sets c to the dot products of the first len(c) groups of n channels of x and
// y. An infinite one is NaN: a clamp would make a small angle of it.
func groupCosines(c, x, y []float32, n int) {
	for k := range c {
		d := Dot(x[k*n:(k+1)*n], y[k*n:(k+1)*n])
		c[k] = d + 0*d
	}
}

// SquaredDistance returns |x-y|^2, the squares of float32 differences summed in float64, and
// NaN where a value is not finite.
func SquaredDistance(x, y []float32) float64 {
	var buf [256]float32
	var s float64
	for len(x) > 0 {
		d := buf[:min(len(buf), len(x))]
		Sub(d, x, y)
		s += SumSq(d)
		x, y = x[len(d):], y[len(d):]
	}
	return s + 0*s
}

// cancelled is the share of the squared lengths below which a squared distance that is
// made of products has lost too many digits.
const cancelled = .1

// Near says whether rows are so near each other, for their squared distance and the sum of
// their squared lengths, that sums of them lose the digits of their difference.
func Near(sq, lengths float64) bool { return !(sq > cancelled*lengths) }

// Distance returns |x-y| for the sum of the squared lengths of x and y and their product.
func Distance(lengths, dot float64, x, y []float32) float32 {
	sq := lengths - 2*dot
	if Near(sq, lengths) {
		sq = SquaredDistance(x, y)
	}
	return float32(math.Sqrt(sq))
}
