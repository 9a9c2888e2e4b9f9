package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
)

// recurrentEps is added to the length of a refined query.
const recurrentEps = 1e-8

// weight returns the columns of the weight that read queries, or those that read the context.
func (b *recurrentBlock) weight(ofContext bool) gemm.Matrix {
	from := 0
	if ofContext {
		from = b.channels
	}
	return op.Matrix(b.c, b.how.weight, from, 2*b.channels)
}

// multiplyValues makes W k of the rows of the context.
func (b *recurrentBlock) multiplyValues() {
	b.multiplyBy(b.weight(true), nil, b.span[1-b.query].rows(), b.packed[1-b.query], b.values)
}

// multiplyRows makes W x + b of n rows x.
func (b *recurrentBlock) multiplyRows(n int, rows, to []float32) {
	b.multiplyBy(b.weight(false), b.c.In[b.how.weight+1].F32, n, rows, to)
}

func (b *recurrentBlock) multiplyBy(weight gemm.Matrix, bias []float32, n int, rows, to []float32) {
	if n == 0 {
		return
	}
	p := b.product
	p.TransA, p.TransB, p.Beta, p.Bias = false, true, 0, bias
	p.M, p.N, p.K = n, 2*b.channels, b.channels
	p.A, p.B, p.C, p.LDC = b.matrix(rows), weight, to, 2*b.channels
	b.c.Engine.Multiply(p)
	p.Bias = nil
}

// steps runs the first n steps for sequences of the context.
func (b *recurrentBlock) steps(contexts, n int, attend func(worker, lo, hi int)) {
	for b.now = range n {
		if b.now > 0 && b.now+1 < b.how.steps {
			b.multiplyRows(contexts*b.span[b.query].rows(), b.refined[b.now-1], b.gates[b.now])
		}
		b.c.Engine.For(contexts, 1, attend)
	}
}

// attend does a step of the pairs of sequences of the context with all queries of the block: their
// scores and, but for the last one, what their queries become.
func (b *recurrentBlock) attend(worker, lo, hi int) {
	q, last := b.span[b.query], b.now+1 == b.how.steps
	for i := lo; i < hi; i++ {
		context := b.span[1-b.query].from + i
		if _, k := b.span[1-b.query].of(context); k == 0 && !last { // whose rows are multiplied like any other
			n := q.rows() * b.channels
			clear(b.refined[b.now][i*n:][:n])
		}
		for query := q.from; query < q.to; query++ {
			w, score := b.pairAt(worker, query, context), float32(0)
			if w.q > 0 && w.k > 0 {
				b.multiplyPair(&w, worker, i)
				score = b.score(&w, i)
				if !last {
					b.refine(&w, worker, i)
				}
			}
			if b.backward {
				continue
			}
			if out := &b.c.Out.F32[b.at(query, context)]; b.now == 0 {
				*out = score
			} else {
				*out += score
			}
		}
	}
}

// rowsOf returns those of a pair with sequence i of the context in a matrix of width columns.
func (b *recurrentBlock) rowsOf(w *pairWork, i int, of []float32, width int) []float32 {
	return of[(i*b.span[b.query].rows()+w.row)*width:][:w.q*width]
}

// queriesOf returns x of the step of a pair with sequence i of the context: (q, C).
func (b *recurrentBlock) queriesOf(w *pairWork, i, step int) []float32 {
	if step == 0 {
		return b.packed[b.query][w.row*b.channels:][:w.q*b.channels]
	}
	return b.rowsOf(w, i, b.refined[step-1], b.channels)
}

// contextOf returns the rows of sequence i of the context in a matrix of width columns.
func (b *recurrentBlock) contextOf(i int, of []float32, width int) []float32 {
	at, n := b.span[1-b.query].of(b.span[1-b.query].from + i)
	return of[at*width:][:n*width]
}

// pairAt is pairOf with the products of a step but the first in the thread's memory.
func (b *recurrentBlock) pairAt(worker, query, context int) pairWork {
	w := b.pairOf(worker, query, context)
	if b.now > 0 {
		t, n := &b.threads[worker], w.q*w.k
		w.products[attentionSite] = pairProducts{t.products[:n], 0, w.k}
		w.dproducts[attentionSite] = pairProducts{t.dproducts[:n], 0, w.k}
	}
	return w
}

// multiplyPair makes the products of a pair that the attention of a step but the first reads.
func (b *recurrentBlock) multiplyPair(w *pairWork, worker, i int) {
	if b.now == 0 {
		return
	}
	context := b.packed[b.sites[attentionSite][1-b.query]]
	b.multiplySerial(worker, true, w.q, w.k, b.channels, b.matrix(b.queriesOf(w, i, b.now)),
		b.matrix(b.contextOf(i, context, b.channels)),
		0, w.products[attentionSite].values, w.k)
}

// multiplySerial makes or adds a product (m, n) over k values on one thread, with the second
// matrix transposed or not.
func (b *recurrentBlock) multiplySerial(worker int, transposed bool, m, n, k int, x, y gemm.Matrix, beta float32,
	to []float32, ld int) {
	p := b.serial[worker]
	p.TransB, p.Alpha, p.Beta = transposed, 1, beta
	p.M, p.N, p.K = m, n, k
	p.A, p.B, p.C, p.LDC = x, y, to, ld
	b.c.Engine.MultiplySerial(p)
}

// refine makes the queries of a pair for the next step, after score.
func (b *recurrentBlock) refine(w *pairWork, worker, i int) {
	c, t := b.channels, &b.threads[worker]
	gates, x := b.rowsOf(w, i, b.gates[b.now], 2*c), b.rowsOf(w, i, b.refined[b.now], c)
	if b.now == 0 {
		copy(gates, b.first[w.row*2*c:])
	}
	b.c.Engine.GemmSerial(false, false, w.q, 2*c, w.k, 1, w.weights, w.k, b.contextOf(i, b.values, 2*c), 2*c, 1, gates,
		2*c)
	copy(x, b.queriesOf(w, i, b.now))
	lengths := b.rowsOf(w, i, b.lengths[b.now], 1)
	for r := range w.q {
		row, g := x[r*c:][:c], gates[r*2*c:][:2*c]
		clear(t.reset)
		clear(t.gate)
		vector.GRU(row, g[c:], t.reset, g[:c], t.gate)
		if b.how.unit {
			lengths[r] = float32(math.Sqrt(vector.SumSq(row)))
			vector.Scale(row, 1/(lengths[r]+recurrentEps), row)
		}
	}
}
