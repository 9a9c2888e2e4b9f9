package contrast

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// Coefficients of the polynomials of a pair and of a negative, from the constant on (Wei et al.
// 2020, "Universal Weighting Metric Learning for Cross-Modal Matching", section 4; the values
// are those of its code).
var (
	polyPair     = [3]float64{.5, -.7, .2}
	polyNegative = [3]float64{.03, -.4, .9}
)

// polyPairMost is the score from which on a pair is near enough: its polynomial is 0 at 1 and
// grows again far above.
const polyPairMost = 1 - 1e-5

// Poly returns the polynomial loss of the rows of scores s (B, B), in which row i and column i
// are a pair,
//
//	sum_i (.2 p^2 - .7 p + .5)_+ + (.9 n^2 - .4 n + .03)_+,  p = s_ii, n = max_j s_ij
//
// over the negatives j of Hinge. A row whose n is not above p - margin, one without a negative
// and one with p >= 1 - 1e-5 have no loss. The gradient goes to s.
func Poly(scores, ids *gorgonia.Node, margin float64) *gorgonia.Node {
	return pairLossOf(pairLoss{
		kind: "poly", args: fmt.Sprintf("margin=%g", margin),
		parameters: slices.Concat([]float64{margin, polyPairMost}, polyPair[:], polyNegative[:]),
		loss: func(r scoreRow) float64 {
			p, n, at := r.polynomials(margin)
			if at < 0 {
				return 0
			}
			return max(0, poly(polyPair, p)) + max(0, poly(polyNegative, n))
		},
		slope: func(r scoreRow, ds []float32) {
			p, n, at := r.polynomials(margin)
			if at < 0 {
				return
			}
			if poly(polyPair, p) > 0 {
				ds[r.i] = float32(polyPair[1] + 2*polyPair[2]*p)
			}
			if poly(polyNegative, n) > 0 {
				ds[at] = float32(polyNegative[1] + 2*polyNegative[2]*n)
			}
		},
	}, scores, ids)
}

// polynomials returns the scores of a row that have a loss and the column of the negative, -1
// where the row has none.
func (r scoreRow) polynomials(margin float64) (p, n float64, at int) {
	p = r.own()
	if n, at = r.hardest(); at >= 0 && (n+margin <= p || p >= polyPairMost) {
		at = -1
	}
	return p, n, at
}

func poly(a [3]float64, x float64) float64 { return a[0] + x*(a[1]+x*a[2]) }
