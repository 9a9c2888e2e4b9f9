package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// negativeBlock is a block of pairs.
type negativeBlock struct {
	*crossBlock
	how     *negative
	shares  []float32 // u of each sequence of the queries
	threads []negativeThread
}

// negativeThread is a thread's memory for a pair of q words with k regions.
type negativeThread struct {
	positive []float32 // (q, k) p
	maxima   []float32 // (q) m
	nearest  []float32 // (q) the region of each maximum
}

// floats is the memory of a block.
func (x *negative) floats(channels, threads int, backward bool) int {
	b := negativeBlock{how: x, crossBlock: &crossBlock{cross: &x.cross, channels: channels, backward: backward}}
	var m carve
	b.crossBlock.lay(&m, threads)
	b.lay(&m, threads)
	return m.used
}

// lay gives a block its memory behind that of cross attention.
func (b *negativeBlock) lay(m *carve, threads int) {
	q, k := b.sides[b.query].len, b.sides[1-b.query].len
	if b.how.smooth > 0 {
		b.shares = m.take(b.most[b.query] * q)
	}
	for range threads {
		b.threads = append(b.threads, negativeThread{positive: m.take(q * k), maxima: m.take(q), nearest: m.take(q)})
	}
}

func (x *negative) step(c *exec.Call, backward bool) (exec.Step, error) {
	m := &carve{memory: c.Scratch}
	b := &negativeBlock{how: x, crossBlock: x.block(c, m, backward)}
	b.lay(m, c.Engine.Threads())
	attend, grams, addGrams, share := b.attend, b.grams, b.addGrams, b.share
	return b.run(
		func(contexts int) { c.Engine.For(contexts, 1, grams) },
		func(contexts int) {
			b.multiply()
			if x.smooth > 0 {
				c.Engine.For(b.span[b.query].to-b.span[b.query].from, 1, share)
			}
			if backward {
				b.clearSlopes()
			}
			c.Engine.For(contexts, 1, attend)
			if backward {
				b.addSlopes()
			}
		},
		func(contexts int) { c.Engine.For(contexts, 1, addGrams) }), nil
}

// share makes u of sequences of the queries.
func (b *negativeBlock) share(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		at, n := b.span[b.query].of(b.span[b.query].from + i)
		if n == 0 {
			continue
		}
		rows, u := b.matrix(b.packed[b.query][at*b.channels:]), b.sharesOf(at, n)
		p := b.serial[worker]
		p.TransB, p.Alpha, p.Beta = true, b.how.smooth, 0
		p.M, p.N, p.K = n, n, b.channels
		p.A, p.B, p.C, p.LDC = rows, rows, u, n
		b.c.Engine.MultiplySerial(p)
		for r := range n {
			vector.Softmax(u[r*n:][:n], u[r*n:][:n])
		}
	}
}

// sharesOf returns u (n, n) of the sequence whose n rows begin at one.
func (b *negativeBlock) sharesOf(at, n int) []float32 {
	return b.shares[at*b.sides[b.query].len:][:n*n]
}

// attend works on the pairs of sequences of the context with all queries of the block.
func (b *negativeBlock) attend(worker, lo, hi int) {
	q := b.span[b.query]
	for i := lo; i < hi; i++ {
		context := b.span[1-b.query].from + i
		for query := q.from; query < q.to; query++ {
			w, at := b.pairOf(worker, query, context), b.at(query, context)
			t := b.threads[worker]
			t.positive, t.maxima, t.nearest = t.positive[:w.q*w.k], t.maxima[:w.q], t.nearest[:w.q]
			if w.q == 0 || w.k == 0 {
				if !b.backward {
					b.c.Out.F32[at] = 0
					clear(b.c.Aux[0].F32[3*at:][:3])
				}
				continue
			}
			score := b.score(&w, t, i)
			if b.backward {
				b.slopes(&w, t, i, b.c.In[b.how.boundary+1].F32[at])
				continue
			}
			b.c.Out.F32[at] = score
			b.moments(&w, b.c.Aux[0].F32[3*at:][:3])
		}
	}
}

// t is the boundary.
func (b *negativeBlock) t() float32 { return b.c.In[b.how.boundary].F32[b.how.value] }

// score returns the score of a pair with sequence i of the context of the block, and leaves f in
// w.cosines and n's slope in m's place: 1 where m counts, else 0.
func (b *negativeBlock) score(w *pairWork, t negativeThread, i int) float32 {
	k, bound := w.k, b.t()
	b.weigh(w)
	for r := range w.q {
		products := w.products[similaritySite].of(r, k)
		at := vector.ArgMax(products)
		t.nearest[r], t.maxima[r] = float32(at), products[at]-bound
		above(t.positive[r*k:][:k], w.products[attentionSite].of(r, k), b.scale, bound)
	}
	b.c.Engine.GemmSerial(false, false, w.q, k, k, 1, t.positive, k, b.gramOf(b.gram, i), k, 0, w.mixed, k)
	sum := float32(0)
	for r, m := range t.maxima {
		products, positive := w.products[similaritySite].of(r, k), t.positive[r*k:][:k]
		w.lengths[r] = max(0, vector.Dot(positive, w.mixed[r*k:][:k]))
		w.cosines[r] = vector.Dot(positive, products) / max(crossEps, b.denominator(w, r))
		sum += w.cosines[r] + vector.Dot(w.weights[r*k:][:k], products)
		mismatch := m
		if b.how.smooth > 0 {
			mismatch = vector.Dot(b.sharesOf(w.row, w.q)[r*w.q:][:w.q], t.maxima)
		}
		if w.exponents[r] = 0; !(mismatch >= 0) {
			w.exponents[r] = 1
			sum += m
		}
	}
	return sum / float32(w.q)
}

// above sets weights to the softmax of scale times the products that are above a bound, and the
// others to 0.
func above(weights, products []float32, scale, bound float32) {
	top, sum := vector.Max(products), float32(0)
	for c, v := range products {
		weights[c] = 0
		if !(v <= bound) {
			weights[c] = float32(math.Exp(float64(scale * (v - top))))
			sum += weights[c]
		}
	}
	if sum != 0 {
		vector.Scale(weights, 1/sum, weights)
	}
}

// moments sets how many words a pair has and the sums of their largest similarities and of their
// squares.
func (b *negativeBlock) moments(w *pairWork, to []float32) {
	sum, squares := 0., 0.
	for r := range w.q {
		v := float64(vector.Max(w.products[similaritySite].of(r, w.k)))
		sum, squares = sum+v, squares+v*v
	}
	to[0], to[1], to[2] = float32(w.q), float32(sum), float32(squares)
}

// slopes adds the gradients of the products of a pair after score, of |q|^2 and of G, where g is
// the gradient of the score.
func (b *negativeBlock) slopes(w *pairWork, t negativeThread, i int, g float32) {
	k, d := w.k, g/float32(w.q)
	for r := range w.q {
		products, dproducts := w.products[similaritySite].of(r, k), w.dproducts[similaritySite].of(r, k)
		dattention := w.dproducts[attentionSite].of(r, k)
		weights, positive, mixed, slopes := w.weights[r*k:][:k], t.positive[r*k:][:k], w.mixed[r*k:][:k],
			w.slopes[r*k:][:k]
		dproducts[int(t.nearest[r])] += d * w.exponents[r] // n
		dnum, dlength := b.cosineSlopes(w, i, r, d)        // f
		vector.Axpby(slopes, dnum, products, 2*dlength, mixed)
		vector.SoftmaxGradRow(slopes, positive, slopes)
		vector.Axpy(dproducts, dnum, positive)
		vector.Axpy(dattention, b.scale, slopes)
		vector.Scale(mixed, dlength, positive)
		vector.Axpy(dproducts, d, weights) // r
		vector.Scale(slopes, d, products)
		vector.SoftmaxGradRow(slopes, weights, slopes)
	}
	b.c.Engine.GemmSerial(true, false, k, k, w.q, 1, t.positive, k, w.mixed, k, 1, b.gramOf(b.dgram, i), k)
	b.weighSlopes(w)
}
