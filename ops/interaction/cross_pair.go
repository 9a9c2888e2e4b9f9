package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

const (
	crossSlope = 0.1  // of LeakyReLU
	crossEps   = 1e-8 // added to the norms over the queries, and the least product of two lengths
	crossEqual = 1e-5 // weights that differ by this part of them are equal
)

// pairWork is a thread's memory for a pair of q queries with k tokens of context.
type pairWork struct {
	scores    []float32 // (q, k) after LeakyReLU
	weights   []float32 // (q, k)
	mixed     []float32 // (q, k) weights times G
	slopes    []float32 // (q, k) gradient of the weights, then of the logits
	norms     []float32 // (k) over the queries
	inverse   []float32 // (k) lambda / (norm + eps)
	along     []float32 // (k)
	cosines   []float32 // (q) r
	lengths   []float32 // (q) |c_q|^2
	dcosines  []float32 // (q)
	exponents []float32 // (q) l r
	q, k      int
	row       int // the first row of the queries
	// The products of each site, and in the backward pass where their gradients are added.
	products, dproducts [2]pairProducts
	dweights            []float32 // (q, k) gradient of the weights from elsewhere, or nil
}

// pairProducts are the products of a pair within a matrix.
type pairProducts struct {
	values     []float32
	from, cols int // where those of the pair begin, and how many there are in a row
}

// of returns the products of query r with k tokens of context.
func (p pairProducts) of(r, k int) []float32 { return p.values[p.from+r*p.cols:][:k] }

// pairFloats is the memory of pairWork.
func (x *cross) pairFloats() int {
	q, k := x.sides[x.query].len, x.sides[1-x.query].len
	return 4*q*k + 3*k + 4*q
}

func (b *crossBlock) pairOf(worker, query, context int) pairWork {
	var w pairWork
	at, k := b.span[1-b.query].of(context)
	w.row, w.q = b.span[b.query].of(query)
	w.k = k
	cols := b.span[1-b.query].rows()
	for site := range b.sites {
		w.products[site] = pairProducts{b.products[site], w.row*cols + at, cols}
		w.dproducts[site] = pairProducts{b.dproduct[site], w.row*cols + at, cols}
	}
	m := carve{memory: b.pairs[worker]}
	n := w.q * k
	w.scores, w.weights, w.mixed, w.slopes = m.take(n), m.take(n), m.take(n), m.take(n)
	w.norms, w.inverse, w.along = m.take(k), m.take(k), m.take(k)
	w.cosines, w.lengths, w.dcosines, w.exponents = m.take(w.q), m.take(w.q), m.take(w.q), m.take(w.q)
	return w
}

// attend works on the pairs of sequences of the context with all queries of the block.
func (b *crossBlock) attend(worker, lo, hi int) {
	q := b.span[b.query]
	for i := lo; i < hi; i++ {
		context := b.span[1-b.query].from + i
		for query := q.from; query < q.to; query++ {
			w, at := b.pairOf(worker, query, context), b.at(query, context)
			switch {
			case w.q == 0 || w.k == 0:
				if !b.backward {
					b.c.Out.F32[at] = 0
				}
			case b.backward:
				b.score(&w, i)
				b.scoreSlopes(&w, i, b.c.In[b.operands].F32[at])
			default:
				b.c.Out.F32[at] = b.score(&w, i)
			}
		}
	}
}

// at returns where the score of a pair is.
func (b *crossBlock) at(query, context int) int {
	texts := b.c.In[1].Dim(0) / b.sides[1].len
	if b.query == 0 {
		return query*texts + context
	}
	return context*texts + query
}

// weigh makes the weights of a pair.
func (b *crossBlock) weigh(w *pairWork) {
	k := w.k
	clear(w.norms)
	for r := range w.q {
		row := w.scores[r*k:][:k]
		for c, v := range w.products[attentionSite].of(r, k) {
			if v < 0 {
				v *= crossSlope
			}
			row[c] = v
			w.norms[c] += v * v
		}
	}
	for c, v := range w.norms {
		w.norms[c] = float32(math.Sqrt(float64(v)))
		w.inverse[c] = b.scale / (w.norms[c] + crossEps)
	}
	for r := range w.q {
		row := w.weights[r*k:][:k]
		vector.Mul(row, w.scores[r*k:][:k], w.inverse)
		vector.Softmax(row, row)
		if b.focal {
			focus(row)
		}
	}
}

// score returns the score of a pair with sequence i of the context of the block.
func (b *crossBlock) score(w *pairWork, i int) float32 {
	b.weigh(w)
	k := w.k
	b.c.Engine.GemmSerial(false, false, w.q, k, k, 1, w.weights, k, b.gramOf(b.gram, i), k, 0, w.mixed, k)
	for r := range w.q {
		weights := w.weights[r*k:][:k]
		w.lengths[r] = max(0, vector.Dot(weights, w.mixed[r*k:][:k]))
		w.cosines[r] = vector.Dot(weights, w.products[similaritySite].of(r, k)) / max(crossEps, b.denominator(w, r))
	}
	if b.pool == 0 {
		return vector.Sum(w.cosines) / float32(w.q)
	}
	vector.Scale(w.exponents, b.pool, w.cosines)
	return vector.LogSumExp(w.exponents) / b.pool
}

// denominator returns |q| |c_q| of query r.
func (b *crossBlock) denominator(w *pairWork, r int) float32 {
	return b.norms[w.row+r] * float32(math.Sqrt(float64(w.lengths[r])))
}

// focus sets weights that are not above their mean to 0, and the sum of the others to 1. Weights
// of which none is above the mean are equal and stay.
func focus(weights []float32) {
	mean := vector.Sum(weights) / float32(len(weights)) * (1 + crossEqual)
	if !(vector.Max(weights) > mean) {
		return
	}
	kept := float32(0)
	for c, v := range weights {
		if v > mean {
			kept += v
		} else {
			weights[c] = 0
		}
	}
	vector.Scale(weights, 1/kept, weights)
}

// scoreSlopes adds the gradients of the products of a pair after score, of |q|^2 and of G, where g
// is the gradient of the score.
func (b *crossBlock) scoreSlopes(w *pairWork, i int, g float32) {
	k := w.k
	if b.pool == 0 {
		vector.Fill(w.dcosines, g/float32(w.q))
	} else {
		vector.Softmax(w.dcosines, w.exponents)
		vector.Scale(w.dcosines, g, w.dcosines)
	}
	for r, d := range w.dcosines {
		dnum, dlength := b.cosineSlopes(w, i, r, d)
		weights, mixed, slopes := w.weights[r*k:][:k], w.mixed[r*k:][:k], w.slopes[r*k:][:k]
		vector.Axpby(slopes, dnum, w.products[similaritySite].of(r, k), 2*dlength, mixed)
		if w.dweights != nil {
			vector.Add(slopes, slopes, w.dweights[r*k:][:k])
		}
		vector.Axpy(w.dproducts[similaritySite].of(r, k), dnum, weights)
		vector.SoftmaxGradRow(slopes, weights, slopes)
		vector.Scale(mixed, dlength, weights)
	}
	gram := b.gramOf(b.dgram, i)
	b.c.Engine.GemmSerial(true, false, k, k, w.q, 1, w.weights, k, w.mixed, k, 1, gram, k)
	b.weighSlopes(w)
}

// cosineSlopes returns the gradients of q.c_q and of |c_q|^2, and adds that of |q|^2, where d is the
// gradient of the cosine of query r.
func (b *crossBlock) cosineSlopes(w *pairWork, i, r int, d float32) (dnum, dlength float32) {
	den := b.denominator(w, r)
	if den > crossEps {
		norm := b.norms[w.row+r]
		dlength = -d * w.cosines[r] / (2 * w.lengths[r])
		b.dnorms[i*b.most[b.query]+w.row+r] -= d * w.cosines[r] / (2 * norm * norm)
	}
	return d / max(crossEps, den), dlength
}

// weighSlopes adds the gradients of the products that the attention reads after weigh, where
// w.slopes is that of what the softmax is of.
func (b *crossBlock) weighSlopes(w *pairWork) {
	k := w.k
	clear(w.along)
	for r := range w.q {
		slopes := w.slopes[r*k:][:k]
		for c, v := range w.scores[r*k:][:k] {
			w.along[c] += v * slopes[c]
		}
	}
	for c, v := range w.norms { // the gradient through the norm
		if v > 0 {
			w.along[c] *= w.inverse[c] / (v * (v + crossEps))
		}
	}
	for r := range w.q {
		row, scores, slopes := w.dproducts[attentionSite].of(r, k), w.scores[r*k:][:k], w.slopes[r*k:][:k]
		for c, v := range scores {
			d := slopes[c]*w.inverse[c] - v*w.along[c]
			if v <= 0 {
				d *= crossSlope
			}
			row[c] += d
		}
	}
}
