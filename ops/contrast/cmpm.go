package contrast

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
)

// cmpmEps keeps the logarithm of a pair that is no match finite.
const cmpmEps = 1e-8

// CMPM returns the cross-modal projection matching loss of the rows of scores s (B, B) (Zhang
// and Lu 2018, "Deep Cross-Modal Projection Learning for Image-Text Matching", equations 1 to 4),
//
//	sum_i sum_j p_ij log(p_ij / (q_ij + 1e-8)),  p_i = softmax_j(scale s_ij)
//
// where q_i is uniform over the matches of row i: its own column and, with ids (B) int32, those
// of its id. The gradient goes to s.
func CMPM(scores, ids *gorgonia.Node, scale float64) *gorgonia.Node {
	return pairLossOf(pairLoss{
		kind: "cmpm", args: fmt.Sprintf("scale=%g", scale), parameters: []float64{scale, cmpmEps},
		loss: func(r scoreRow) (sum float64) {
			r.divergence(scale, func(_ int, p, log float64) { sum += p * log })
			return sum
		},
		slope: func(r scoreRow, ds []float32) {
			var mean float64
			r.divergence(scale, func(_ int, p, log float64) { mean += p * log })
			r.divergence(scale, func(j int, p, log float64) { ds[j] = float32(scale * p * (log - mean)) })
		},
	}, scores, ids)
}

// divergence calls f with p_ij and log(p_ij / (q_ij + eps)) of every column j.
func (r scoreRow) divergence(scale float64, f func(j int, p, log float64)) {
	top, sum, matches := math.Inf(-1), 0., 0.
	for _, v := range r.s {
		top = max(top, scale*float64(v))
	}
	for j, v := range r.s {
		sum += math.Exp(scale*float64(v) - top)
		if r.matches(j) {
			matches++
		}
	}
	lse := top + math.Log(sum)
	for j, v := range r.s {
		q := 0.
		if r.matches(j) {
			q = 1 / matches
		}
		log := scale*float64(v) - lse
		f(j, math.Exp(log), log-math.Log(q+cmpmEps))
	}
}
