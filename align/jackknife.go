package align

import (
	"math"

	"github.com/geoalign/geoalign/compute"
)

// jackknifeGroups is how many parts of the pairs are left out in turn.
const jackknifeGroups = 10

// ckaError returns the standard error of the CKA of paired kernels over the choice of pairs, by leaving out a tenth of
// them in turn (delete-a-group jackknife; Kott 2001): sqrt((g-1)/g sum_k (cka_k - mean)^2) for g groups. 0: the pairs
// are too few.
func ckaError(e *compute.Engine, x, y *neighbourhoods) float64 {
	g := min(jackknifeGroups, x.n/5) // four pairs must be left, and more to say anything
	if g < 2 {
		return 0
	}
	values := make([]float64, g)
	keep := make([]int, 0, x.n)
	for k := range values {
		keep = keep[:0]
		for i := range x.n {
			if i%g != k {
				keep = append(keep, i)
			}
		}
		a, b := x.kernelOf(e, keep), y.kernelOf(e, keep)
		order := keep[:len(keep):len(keep)]
		for i := range order {
			order[i] = i
		}
		values[k] = hsic(e, a, b, order) / math.Sqrt(hsic(e, a, a, order)*hsic(e, b, b, order))
	}
	mean := 0.0
	for _, v := range values {
		mean += v / float64(g)
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	if err := math.Sqrt(float64(g-1) / float64(g) * sum); !math.IsNaN(err) {
		return err
	}
	return math.Inf(1) // what is left of some group has no shape
}

// kernelOf returns the kernel of the rows in keep, with what hsic reads of it.
func (h *neighbourhoods) kernelOf(e *compute.Engine, keep []int) *neighbourhoods {
	n := len(keep)
	out := &neighbourhoods{n: n, kernel: make([]float64, n*n), sums: make([]float64, n)}
	e.For(n, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := h.kernel[keep[i]*h.n:][:h.n], out.kernel[i*n:][:n]
			for j, k := range keep {
				to[j] = from[k]
				out.sums[i] += from[k]
			}
		}
	})
	for _, v := range out.sums {
		out.total += v
	}
	return out
}
