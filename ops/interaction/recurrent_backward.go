package interaction

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// dmemory returns where the gradients of the weight and the bias go.
func (b *recurrentBlock) dmemory() (weight, bias []float32) {
	return b.c.Aux[b.rows-1].F32, b.c.Aux[b.rows].F32
}

// stepsBack goes through the steps from the last to the first: the gradients of the products of
// the block, of the context and of the memory unit, and those of the queries but for the part
// through the block's products.
func (b *recurrentBlock) stepsBack(contexts int, slopes, sums func(worker, lo, hi int)) {
	rows := b.span[b.query].rows()
	clear(b.drefined[:contexts*rows*b.channels])
	for b.now = b.how.steps - 1; b.now >= 0; b.now-- {
		b.c.Engine.For(contexts, 1, slopes)
		switch before := b.now - 1; {
		case before > 0:
			b.addMemory(contexts*rows, b.gates[before], b.refined[before-1], b.drefined)
		case before == 0:
			b.c.Engine.For(rows, 8, sums)
			b.addMemory(rows, b.first, b.packed[b.query], b.dpacked[b.query])
		}
	}
}

// addMemory adds the gradients of n rows x, of the weight's columns for queries and of the bias
// through W x + b, whose gradient is d.
func (b *recurrentBlock) addMemory(n int, d, x, dx []float32) {
	_, dbias := b.dmemory()
	for r := range n {
		vector.Add(dbias, dbias, d[r*2*b.channels:][:2*b.channels])
	}
	b.addThrough(false, n, d, x, dx)
}

// addValues adds the gradients of the rows of the context and of the weight's columns for it.
func (b *recurrentBlock) addValues() {
	k := 1 - b.query
	b.addThrough(true, b.span[k].rows(), b.dvalues, b.packed[k], b.dpacked[k])
}

// addThrough adds the gradients of n rows x and of columns of the weight through their products,
// whose gradient is d (n, 2C).
func (b *recurrentBlock) addThrough(ofContext bool, n int, d, x, dx []float32) {
	if n == 0 {
		return
	}
	c := b.channels
	weight, _ := b.dmemory()
	if ofContext {
		weight = weight[c:]
	}
	dy := gemm.Matrix{F32: d, LD: 2 * c}
	p := b.product
	p.TransA, p.TransB, p.Beta = false, false, 1
	p.M, p.N, p.K = n, c, 2*c
	p.A, p.B, p.C, p.LDC = dy, b.weight(ofContext), dx, c
	b.c.Engine.Multiply(p)
	p.TransA = true
	p.M, p.N, p.K = 2*c, c, n
	p.A, p.B, p.C, p.LDC = dy, b.matrix(x), weight, 2*c
	b.c.Engine.Multiply(p)
}

// sums adds up the gradients that the queries and the first step's gates have of all sequences of
// the context, those of queries to the gradient of the block.
func (b *recurrentBlock) sums(_, lo, hi int) {
	c, rows := b.channels, b.span[b.query].rows()
	for r := lo; r < hi; r++ {
		gates, query := b.first[r*2*c:][:2*c], b.dpacked[b.query][r*c:][:c]
		clear(gates)
		for i := range b.span[1-b.query].to - b.span[1-b.query].from {
			vector.Add(gates, gates, b.gates[0][(i*rows+r)*2*c:][:2*c])
			vector.Add(query, query, b.drefined[(i*rows+r)*c:][:c])
		}
	}
}

// slopes goes back through a step of the pairs of sequences of the context with all queries of the
// block, and through the gates that made its queries.
func (b *recurrentBlock) slopes(worker, lo, hi int) {
	q := b.span[b.query]
	for i := lo; i < hi; i++ {
		context := b.span[1-b.query].from + i
		if _, k := b.span[1-b.query].of(context); k == 0 && b.now > 0 { // whose rows are multiplied like any other
			n := q.rows() * 2 * b.channels
			clear(b.gates[b.now-1][i*n:][:n])
		}
		for query := q.from; query < q.to; query++ {
			if w := b.pairAt(worker, query, context); w.q > 0 && w.k > 0 {
				b.pairSlopes(&w, worker, i, b.c.In[b.how.weight+2].F32[b.at(query, context)])
			}
		}
	}
}

func (b *recurrentBlock) pairSlopes(w *pairWork, worker, i int, g float32) {
	c, t := b.channels, &b.threads[worker]
	b.multiplyPair(w, worker, i)
	b.score(w, i)
	if b.now+1 < b.how.steps { // what the queries became of the context
		d, values := b.rowsOf(w, i, b.gates[b.now], 2*c), b.contextOf(i, b.values, 2*c)
		w.dweights = t.dweights[:w.q*w.k]
		b.multiplySerial(worker, true, w.q, w.k, 2*c, gemm.Matrix{F32: d, LD: 2 * c},
			gemm.Matrix{F32: values, LD: 2 * c}, 0, w.dweights, w.k)
		b.c.Engine.GemmSerial(true, false, w.k, 2*c, w.q, 1, w.weights, w.k, d, 2*c, 1, b.contextOf(i, b.dvalues, 2*c),
			2*c)
	}
	if b.now == 0 {
		b.scoreSlopes(w, i, g)
		return
	}
	slopes := w.dproducts[attentionSite].values
	clear(slopes)
	b.scoreSlopes(w, i, g)
	operand := b.sites[attentionSite][1-b.query]
	context, dcontext := b.contextOf(i, b.packed[operand], c), b.contextOf(i, b.dpacked[operand], c)
	dx := b.rowsOf(w, i, b.drefined, c)
	b.c.Engine.GemmSerial(false, false, w.q, c, w.k, 1, slopes, w.k, context, c, 1, dx, c)
	b.c.Engine.GemmSerial(true, false, w.k, c, w.q, 1, slopes, w.k, b.queriesOf(w, i, b.now), c, 1, dcontext, c)
	b.gateSlopes(w, worker, i, dx)
}

// gateSlopes goes back through the gates that made the queries of the step: dx, the gradient of
// those, becomes that of the queries before, and g and u become the gradients of what they were
// made of.
func (b *recurrentBlock) gateSlopes(w *pairWork, worker, i int, dx []float32) {
	c, t := b.channels, &b.threads[worker]
	before, x := b.queriesOf(w, i, b.now-1), b.queriesOf(w, i, b.now)
	gates, lengths := b.rowsOf(w, i, b.gates[b.now-1], 2*c), b.rowsOf(w, i, b.lengths[b.now-1], 1)
	for r := range w.q {
		d, g := dx[r*c:][:c], gates[r*2*c:][:2*c]
		if n := lengths[r]; b.how.unit && n > 0 {
			row := x[r*c:][:c]
			vector.Axpby(d, 1/(n+recurrentEps), d, -vector.Dot(row, d)/n, row)
		}
		clear(t.reset)
		clear(t.gate)
		vector.GRUGrad(d, g[c:], t.reset, g[:c], t.gate, t.zero, before[r*c:][:c])
	}
}
