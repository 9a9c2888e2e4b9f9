package align

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/compute"
)

// neighbourhoods is one space of a forecast.
type neighbourhoods struct {
	n, k    int
	kernel  []float64 // (n, n) products with a diagonal of 0
	sums    []float64 // (n) of its rows
	total   float64
	self    float64   // HSIC of the kernel with itself
	nearest []int32   // (n, k), the nearest first
	share   []float32 // (n, n): the share of other rows that are farther from row i than j is
}

// newNeighbourhoods ranks the neighbours of prepared rows, those that are equally near in the order that ties (n) says:
// by their numbers, equal rows of one space would be ranked like equal rows of the other, as if both knew of each
// other.
func newNeighbourhoods(e *compute.Engine, s Side, rows []float32, n, k int, ties []int) (*neighbourhoods, error) {
	d := len(rows) / n
	products := make([]float32, n*n)
	e.Gemm(false, true, n, n, d, 1, rows, d, rows, d, 0, products, n)
	h := &neighbourhoods{n: n, k: k, kernel: make([]float64, n*n), sums: make([]float64, n),
		nearest: make([]int32, n*k), share: make([]float32, n*n)}
	e.For(n, 8, func(_, lo, hi int) {
		order := make([]int32, 0, n)
		for i := lo; i < hi; i++ {
			row := products[i*n:][:n]
			order = order[:0]
			for j := range row {
				if j != i {
					h.kernel[i*n+j] = float64(row[j])
					h.sums[i] += float64(row[j])
				}
				if ties[j] != i {
					order = append(order, int32(ties[j]))
				}
			}
			slices.SortStableFunc(order, func(a, b int32) int {
				switch {
				case row[a] > row[b]:
					return -1
				case row[a] < row[b]:
					return 1
				}
				return 0
			})
			copy(h.nearest[i*k:][:k], order)
			for rank, j := range order {
				h.share[i*n+int(j)] = 1 - float32(rank)/float32(n-2)
			}
		}
	})
	for _, v := range h.sums {
		h.total += v
	}
	same := make([]int, n)
	for i := range same {
		same[i] = i
	}
	h.self = hsic(e, h, h, same)
	squares := 0.0
	for _, v := range h.kernel {
		squares += v * v
	}
	if !(h.self > noise*noise*squares/float64(n*n)) { // what rounding leaves of kernels that are constant
		return nil, fmt.Errorf("align: the %d rows of the %ss have no shape to compare: a forecast needs rows that differ", n, s)
	}
	return h, nil
}

// hsic is the unbiased estimate of HSIC (Song et al. 2012, eq. 5) for kernels without their
// diagonals, K of x and L of y, whose item order[i] is paired with item i:
//
//	(tr(K L) + sum K sum L / ((n-1)(n-2)) - 2/(n-2) 1^T K L 1) / (n (n-3))
func hsic(e *compute.Engine, x, y *neighbourhoods, order []int) float64 {
	n := x.n
	rows := make([]float64, n)
	e.For(n, 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			k, l := x.kernel[i*n:][:n], y.kernel[order[i]*n:][:n]
			var sum float64
			for j, v := range k {
				sum += v * l[order[j]]
			}
			rows[i] = sum - 2/float64(n-2)*x.sums[i]*y.sums[order[i]]
		}
	})
	total := x.total * y.total / float64((n-1)*(n-2))
	for _, v := range rows {
		total += v
	}
	return total / float64(n*(n-3))
}

// compareSpaces returns mutual neighbours, CKA and agreement where item order[i] of y is
// paired with item i of x.
func compareSpaces(e *compute.Engine, x, y *neighbourhoods, order []int) [3]float64 {
	n, k := x.n, x.k
	inverse := make([]int, n)
	for i, j := range order {
		inverse[j] = i
	}
	near := make([]bool, n)
	var mutual int
	var share float64
	for i := range n {
		for _, j := range y.nearest[order[i]*k:][:k] {
			near[inverse[j]] = true
			share += float64(x.share[i*n+inverse[j]])
		}
		for _, j := range x.nearest[i*k:][:k] {
			if near[j] {
				mutual++
			}
			share += float64(y.share[order[i]*n+order[j]])
		}
		clear(near)
	}
	cka := hsic(e, x, y, order) / math.Sqrt(x.self*y.self)
	return [3]float64{float64(mutual) / float64(n*k), cka, share / float64(2*n*k)}
}
