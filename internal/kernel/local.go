package kernel

import "math"

// ProductAngle returns the geodesic distance of x and y on a product of spheres,
// sqrt(sum_k arccos^2(x_k . y_k)) in radians over equal groups of channels, with cosines
// limited to [-AcosLimit, AcosLimit]. A cosine that is not finite gives NaN.
func ProductAngle(x, y []float32, spheres int) float32 {
	var c [32]float32
	n := len(x) / spheres
	var s float64
	for from := 0; from < spheres; from += len(c) {
		a := c[:min(len(c), spheres-from)]
		for k := range a {
			lo := (from + k) * n
			d := Dot(x[lo:lo+n], y[lo:lo+n])
			a[k] = d + 0*d
		}
		Acos(a, a, AcosLimit)
		for _, v := range a {
			s += float64(v) * float64(v)
		}
	}
	return float32(math.Sqrt(s))
}

// SquaredDistance returns |x-y|^2, summed in float64, and NaN where a value is not finite.
func SquaredDistance(x, y []float32) float64 {
	y = y[:len(x)]
	var a, b float64
	i := 0
	for ; i+1 < len(x); i += 2 {
		u, v := float64(x[i])-float64(y[i]), float64(x[i+1])-float64(y[i+1])
		a += u * u
		b += v * v
	}
	if i < len(x) {
		u := float64(x[i]) - float64(y[i])
		a += u * u
	}
	return a + b + 0*(a+b)
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
