package geometric

import "math"

const (
	// NormFloor is the least norm that Unit divides by.
	NormFloor = 1e-12
	// Coincide times the sum of their squared norms is the squared distance up to which
	// two points coincide.
	Coincide = 1e-12
)

// Distances returns the squared distances (K, K) of points (K, D), scaled.
func Distances(points []float32, k int, scale string) []float64 {
	d := len(points) / k
	norm := make([]float64, k)
	for i := range norm {
		for _, v := range points[i*d : (i+1)*d] {
			norm[i] += float64(v) * float64(v)
		}
		norm[i] = math.Sqrt(norm[i])
	}
	d2 := make([]float64, k*k)
	var mean float64
	for i := range k {
		for j := range k {
			si, sj := 1., 1.
			if scale == Unit {
				si, sj = 1/max(norm[i], NormFloor), 1/max(norm[j], NormFloor)
			}
			var s float64
			for c := range d {
				diff := float64(points[i*d+c])*si - float64(points[j*d+c])*sj
				s += diff * diff
			}
			if s <= Coincide*(norm[i]*norm[i]*si*si+norm[j]*norm[j]*sj*sj) {
				s = 0
			}
			d2[i*k+j] = s
			mean += s / max(1, float64(k)*float64(k-1))
		}
	}
	if scale == Relative && mean > 0 {
		for i := range d2 {
			d2[i] /= mean
		}
	}
	return d2
}

// Of returns the kernel's value for the squared distance d2.
func (o Options) Of(d2 float64) float64 {
	switch o.Kernel {
	case Heat:
		return math.Exp(-d2 / (4 * float64(o.Epsilon)))
	case Linear:
		return math.Sqrt(d2)
	case Squared:
		return d2
	default:
		return 1 / (1 + d2)
	}
}

// Weights returns the kernel matrix (K, K) of points (K, D): W_ij = k_ij / sum_l k_il,
// the diagonal included, which is 1 before the division for Heat and Inverse and 0 for
// the others. A row whose sum is 0 stays 0.
func (o Options) Weights(points []float32, k int) []float64 {
	w := Distances(points, k, o.Scale)
	for i := range k {
		row, sum := w[i*k:(i+1)*k], 0.
		for j, d2 := range row {
			row[j] = o.Of(d2)
			sum += row[j]
		}
		for j := range row {
			if sum > 0 {
				row[j] /= sum
			}
		}
	}
	return w
}

// Distance returns the squared Frobenius norm of the difference of two kernel matrices.
func Distance(before, after []float64) (s float64) {
	for i, v := range before {
		s += (v - after[i]) * (v - after[i])
	}
	return s
}

// Loss returns || W(before) - W(after) ||_F^2 of one neighbourhood of K points, before
// (K, D) and after (K, C).
func (o Options) Loss(before, after []float32, k int) float64 {
	return Distance(o.Weights(before, k), o.Weights(after, k))
}
