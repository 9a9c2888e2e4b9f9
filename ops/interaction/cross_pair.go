package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// pairWork is a thread's memory for a pair of q queries with k tokens of context.
type pairWork struct {
	attending
	mixed     []float32 // (q, k) weights times G
	cosines   []float32 // (q) r
	lengths   []float32 // (q) |c_q|^2
	dcosines  []float32 // (q)
	exponents []float32 // (q) l r
	row       int       // the first row of the queries
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
	return attendingFloats(q, k) + q*k + 4*q
}

func (b *crossBlock) pairOf(worker, query, context int) pairWork {
	cols := b.span[1-b.query].rows()
	at, k := b.span[1-b.query].of(context)
	row, q := b.span[b.query].of(query)
	m := carve{memory: b.pairs[worker]}
	w := pairWork{
		attending: attendingIn(&m, q, k), mixed: m.take(q * k),
		cosines: m.take(q), lengths: m.take(q), dcosines: m.take(q), exponents: m.take(q), row: row,
	}
	for site := range b.sites {
		w.products[site] = pairProducts{b.products[site], row*cols + at, cols}
		w.dproducts[site] = pairProducts{b.dproduct[site], row*cols + at, cols}
	}
	return w
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
	p := w.products[attentionSite]
	w.attending.weigh(p.values[p.from:], p.cols, b.scale)
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
		w.toLogits(r)
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
	p := w.dproducts[attentionSite]
	w.toProducts(p.values[p.from:], p.cols, true)
}
