package contrast

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// Hinge returns the triplet loss of the rows of scores s (B, B), in which row i and column i
// are a pair,
//
//	sum_i max_j (margin + s_ij - s_ii)_+    where hardest is not 0
//	sum_i sum_j (margin + s_ij - s_ii)_+    where it is
//
// over the negatives j of i: all but i and, with ids (B) int32, those of its id; nil: no
// further ones. A row without a negative has no loss. The first is the loss of VSE++ (Faghri et
// al. 2018, equation 5), the second its equation 4. hardest is a scalar. The gradient goes to s.
func Hinge(scores, ids, hardest *gorgonia.Node, margin float64) *gorgonia.Node {
	return pairLossOf(pairLoss{
		kind: "hinge", args: fmt.Sprintf("margin=%g", margin), scalar: "hardest", parameters: []float64{margin},
		loss: func(r scoreRow) (sum float64) {
			r.violations(margin, func(_ int, v float64) { sum += v })
			return sum
		},
		slope: func(r scoreRow, ds []float32) {
			r.violations(margin, func(j int, _ float64) { ds[j]++; ds[r.i]-- })
		},
	}, scores, ids, hardest)
}

// violations calls f with the negatives of a row that are nearer than the margin to its own
// pair, or beyond, and by how much: all, or the hardest alone.
func (r scoreRow) violations(margin float64, f func(j int, v float64)) {
	if r.c.In[1].F32[0] != 0 {
		if n, j := r.hardest(); j >= 0 && margin+n-r.own() > 0 {
			f(j, margin+n-r.own())
		}
		return
	}
	for j, s := range r.s {
		if v := margin + float64(s) - r.own(); v > 0 && !r.matches(j) {
			f(j, v)
		}
	}
}
