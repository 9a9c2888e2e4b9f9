package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// pairWork is a thread's memory for a pair of q queries with k tokens of context.
type pairWork struct {
	attending
	mixed      []float32 // (q, k) weights times G
	cosines    []float32 // (q) r
	lengths    []float32 // (q) |c_q|^2
	dcosines   []float32 // (q)
	exponents  []float32 // (q) l r
	from, cols int       // where the pair's products begin, and how many there are in a row
	row        int       // the first row of the queries
}

// pairFloats is the memory of pairWork.
func (x *cross) pairFloats() int {
	q, k := x.sides[x.query].len, x.sides[1-x.query].len
	return attendingFloats(q, k) + q*k + 4*q
}

func (b *crossBlock) pairOf(worker, query, context int) pairWork {
	cols := b.span[1-b.query].rows()
	at, k := b.span[1-b.query].of(context)
	row, q := b.span[b.query].of(query)
	m := carve{memory: b.pairs[worker]}
	return pairWork{
		attending: attendingIn(&m, q, k), mixed: m.take(q * k),
		cosines: m.take(q), lengths: m.take(q), dcosines: m.take(q), exponents: m.take(q),
		from: row*cols + at, cols: cols, row: row,
	}
}

// of returns the values of query i of a pair in a matrix of the block.
func (w *pairWork) of(products []float32, i int) []float32 {
	return products[w.from+i*w.cols:][:w.k]
}

// attend works on the pairs of sequences of the context with all queries of the block.
func (b *crossBlock) attend(worker, lo, hi int) {
	q, m := b.span[b.query], b.texts()
	for i := lo; i < hi; i++ {
		context := b.span[1-b.query].from + i
		for query := q.from; query < q.to; query++ {
			at := context*m + query
			if b.query == 0 {
				at = query*m + context
			}
			w := b.pairOf(worker, query, context)
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

// texts returns how many texts there are.
func (b *crossBlock) texts() int { return b.c.In[1].Dim(0) / b.sides[1].len }

// score returns the score of a pair with sequence i of the context of the block.
func (b *crossBlock) score(w *pairWork, i int) float32 {
	k := w.k
	w.weigh(b.products[attentionSite][w.from:], w.cols, b.scale, b.focal)
	b.c.Engine.GemmSerial(false, false, w.q, k, k, 1, w.weights, k, b.gramOf(b.gram, i), k, 0, w.mixed, k)
	for r := range w.q {
		weights := w.weights[r*k:][:k]
		w.lengths[r] = max(0, vector.Dot(weights, w.mixed[r*k:][:k]))
		w.cosines[r] = vector.Dot(weights, w.of(b.products[similaritySite], r)) / max(crossEps, b.denominator(w, r))
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

// scoreSlopes sets the gradients of the products of a pair after score, and of |q|^2, and adds
// that of G, where g is the gradient of the score.
func (b *crossBlock) scoreSlopes(w *pairWork, i int, g float32) {
	k := w.k
	if b.pool == 0 {
		vector.Fill(w.dcosines, g/float32(w.q))
	} else {
		vector.Softmax(w.dcosines, w.exponents)
		vector.Scale(w.dcosines, g, w.dcosines)
	}
	clear(w.along)
	for r, d := range w.dcosines {
		den := b.denominator(w, r)
		dnum, dlength := d/max(crossEps, den), float32(0)
		if den > crossEps {
			norm := b.norms[w.row+r]
			dlength = -d * w.cosines[r] / (2 * w.lengths[r])
			b.dnorms[i*b.capacity(b.query)+w.row+r] = -d * w.cosines[r] / (2 * norm * norm)
		}
		weights, mixed := w.weights[r*k:][:k], w.mixed[r*k:][:k]
		vector.Axpby(w.slopes[r*k:][:k], dnum, w.of(b.products[similaritySite], r), 2*dlength, mixed)
		vector.Scale(w.of(b.dproduct[similaritySite], r), dnum, weights)
		w.toLogits(r)
		vector.Scale(mixed, dlength, weights)
	}
	gram := b.gramOf(b.dgram, i)
	b.c.Engine.GemmSerial(true, false, k, k, w.q, 1, w.weights, k, w.mixed, k, 1, gram, k)
	w.toProducts(b.dproduct[attentionSite][w.from:], w.cols, b.shared())
}
