package geometric

import (
	"math"
	"slices"
)

// distances returns the squared distances (K, K) of points (K, D), scaled.
func distances(points []float32, k int, scale string) []float64 {
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
				si, sj = 1/max(norm[i], normFloor), 1/max(norm[j], normFloor)
			}
			var s float64
			for c := range d {
				diff := float64(points[i*d+c])*si - float64(points[j*d+c])*sj
				s += diff * diff
			}
			if s <= coincide*(norm[i]*norm[i]*si*si+norm[j]*norm[j]*sj*sj) {
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

// of returns the kernel's value for the squared distance d2.
func (o Options) of(d2 float64) float64 {
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

// weights returns the kernel matrix (K, K) of points (K, D): W_ij = k_ij / sum_l k_il,
// the diagonal included, which is 1 before the division for Heat and Inverse and 0 for
// the others. A row whose sum is 0 stays 0.
func (o Options) weights(points []float32, k int) []float64 {
	w := distances(points, k, o.Scale)
	for i := range k {
		row, sum := w[i*k:(i+1)*k], 0.
		for j, d2 := range row {
			row[j] = o.of(d2)
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

// frobenius returns the squared Frobenius norm of the difference of two kernel matrices.
func frobenius(before, after []float64) (s float64) {
	for i, v := range before {
		s += (v - after[i]) * (v - after[i])
	}
	return s
}

// loss returns || W(before) - W(after) ||_F^2 of one neighbourhood of K points, before
// (K, D) and after (K, C).
func (o Options) loss(before, after []float32, k int) float64 {
	return frobenius(o.weights(before, k), o.weights(after, k))
}

// sample returns the ranks of count neighbours among len(noise), in ascending order.
// Noise is uniform in (0, 1); Closest does not read it.
func sample(law string, noise []float32, count int) []int {
	ranks := make([]int, len(noise))
	for r := range ranks {
		ranks[r] = r
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		ka, kb := SampleKey(law, a, noise[a]), SampleKey(law, b, noise[b])
		switch {
		case ka > kb:
			return -1
		case ka < kb:
			return 1
		}
		return 0
	})
	ranks = ranks[:count]
	slices.Sort(ranks)
	return ranks
}
