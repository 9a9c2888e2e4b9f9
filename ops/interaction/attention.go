package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

const (
	crossSlope = 0.1  // of LeakyReLU
	crossEps   = 1e-8 // added to the norms over the queries, and the least product of two lengths
)

// attending is a thread's memory for how q queries of a pair attend to k tokens of context.
type attending struct {
	scores  []float32 // (q, k) after LeakyReLU
	weights []float32 // (q, k)
	slopes  []float32 // (q, k) gradient of the weights, then of the logits
	norms   []float32 // (k) over the queries
	inverse []float32 // (k) lambda / (norm + eps)
	along   []float32 // (k)
	q, k    int
}

// attendingFloats is the memory of attending.
func attendingFloats(q, k int) int { return 3 * (q*k + k) }

// attendingIn takes the memory.
func attendingIn(m *carve, q, k int) attending {
	return attending{
		q: q, k: k, scores: m.take(q * k), weights: m.take(q * k), slopes: m.take(q * k),
		norms: m.take(k), inverse: m.take(k), along: m.take(k),
	}
}

// weigh makes the weights of products s (q, k) with rows of ld values,
//
//	b_qk = LeakyReLU(s_qk),  p_qk = softmax_k(scale b_qk / (|b_.k| + eps))
//
// The products may be the scores themselves.
func (a *attending) weigh(products []float32, ld int, scale float32) {
	clear(a.norms)
	for r := range a.q {
		row := a.scores[r*a.k:][:a.k]
		for c, v := range products[r*ld:][:a.k] {
			if v < 0 {
				v *= crossSlope
			}
			row[c] = v
			a.norms[c] += v * v
		}
	}
	for c, v := range a.norms {
		a.norms[c] = float32(math.Sqrt(float64(v)))
		a.inverse[c] = scale / (a.norms[c] + crossEps)
	}
	for r := range a.q {
		row := a.weights[r*a.k:][:a.k]
		vector.Mul(row, a.scores[r*a.k:][:a.k], a.inverse)
		vector.Softmax(row, row)
	}
}

// toLogits turns the gradient of the weights of query r, in slopes, into that of its logits.
func (a *attending) toLogits(r int) {
	slopes := a.slopes[r*a.k:][:a.k]
	vector.SoftmaxGradRow(slopes, a.weights[r*a.k:][:a.k], slopes)
}

// toProducts sets the gradient of the products (q, k) with rows of ld values from that of
// the logits of all queries. It may lie where slopes lie.
func (a *attending) toProducts(products []float32, ld int) {
	clear(a.along)
	for r := range a.q {
		slopes := a.slopes[r*a.k:][:a.k]
		for c, v := range a.scores[r*a.k:][:a.k] {
			a.along[c] += v * slopes[c]
		}
	}
	for c, v := range a.norms { // the gradient through the norm
		if v > 0 {
			a.along[c] *= a.inverse[c] / (v * (v + crossEps))
		}
	}
	for r := range a.q {
		row, slopes := products[r*ld:][:a.k], a.slopes[r*a.k:][:a.k]
		for c, v := range a.scores[r*a.k:][:a.k] {
			d := slopes[c]*a.inverse[c] - v*a.along[c]
			if v <= 0 {
				d *= crossSlope
			}
			row[c] = d
		}
	}
}
