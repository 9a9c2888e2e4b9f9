package oncuda

import "github.com/geoalign/geoalign/internal/cuda"

// forward makes the scores of a block.
func (b *recurrentWork) forward() {
	b.begin()
	for t := range b.how.Steps {
		b.attend(t)
		b.launch(b.kernels.score, b.Sides[b.Query].Len, []any{b.c.Out, b.at(b.weights), b.at(b.mixed),
			b.at(b.products[similaritySite]), b.at(b.norms)}, []any{b.Pool, t > 0})
		if b.last(t) {
			break
		}
		b.refine(t)
	}
}

// begin makes W q + b, and with the first queries of a context W k.
func (b *recurrentWork) begin() {
	if b.now[b.Query].from == 0 {
		b.multiplyValues()
	}
	queries, _ := b.queries(0)
	b.multiplyRows(queries, b.queryRows(), b.first)
}

// multiplyValues makes W k of the rows of the context.
func (b *recurrentWork) multiplyValues() {
	n := 2 * b.channels
	context, rows := b.tokens(1 - b.Query)
	p := cuda.Product{TransB: true, M: rows, N: n, K: b.channels}
	cuda.Multiply(b.c, p, context, b.weight(true), cuda.FloatsAt(b.at(b.values), n), nil)
	if !b.backward {
		return
	}

	b.roundRows(b.valuesRead, b.values, rows)
}

// roundRows makes rows of 2C floats those that products read.
func (b *recurrentWork) roundRows(to cuda.Matrix, from cuda.Pointer, rows int) {
	b.round.Enqueue(cuda.Grid{X: cuda.Blocks(rows*to.LD, 256), Threads: 256}, b.at(to.At), b.at(from), int64(rows),
		2*b.channels, to.LD)
}

// multiplyRows makes W x + b of n rows x.
func (b *recurrentWork) multiplyRows(x cuda.Matrix, n int, to cuda.Pointer) {
	p := cuda.Product{TransB: true, M: n, N: 2 * b.channels, K: b.channels}
	bias := cuda.MatrixOf(b.c.In[b.how.Weight+1], 0, 0)
	cuda.Multiply(b.c, p, x, b.weight(false), cuda.FloatsAt(b.at(to), 2*b.channels), &bias)
}

// attend makes the weights of step t, and G times them.
func (b *recurrentWork) attend(t int) {
	weights, mixed, k := b.ofStep(b.weights, t), b.ofStep(b.mixed, t), b.Sides[1-b.Query].Len
	if t > 0 {
		b.multiplyPairs(t)
	}
	b.launch(b.kernels.weigh, k, []any{b.at(weights), b.at(b.taken[t].products)}, []any{b.Scale})
	b.mixTo(mixed, weights)
}

// multiplyPairs makes the products that the attention of a step but the first reads.
func (b *recurrentWork) multiplyPairs(t int) {
	queries, _ := b.queries(t)
	contexts, _ := b.tokens(b.Sites[attentionSite][1-b.Query])
	rows, k := b.queryRows(), b.Sides[1-b.Query].Len
	p := cuda.Product{TransB: true, M: rows, N: k, K: b.channels, Batch: b.contexts(),
		StrideA: rows * queries.LD, StrideB: k * contexts.LD, StrideC: k}
	cuda.Multiply(b.c, p, queries, contexts, cuda.FloatsAt(b.at(b.taken[t].products), b.ld), nil)
}

// refine makes the queries of the step after t.
func (b *recurrentWork) refine(t int) {
	s, rows, k, n := b.taken[t], b.queryRows(), b.Sides[1-b.Query].Len, 2*b.channels
	queries, x := b.queries(t)
	// W c is the sum of p_qk W k, and W x + b lies there already but for the first step, whose kernel adds it.
	p := cuda.Product{M: rows, N: n, K: k, Batch: b.contexts(), StrideA: k, StrideB: k * n, StrideC: rows * n}
	var first any = b.at(b.first)
	if t > 0 {
		first, p.Beta = nil, 1
		b.multiplyRows(queries, b.contexts()*rows, s.gates)
	}
	cuda.Multiply(b.c, p, cuda.FloatsAt(b.at(b.ofStep(b.weights, t)), b.ld), cuda.FloatsAt(b.at(b.values), n),
		cuda.FloatsAt(b.at(s.gates), n), nil)
	var half any
	if s.half.LD > 0 {
		half = b.at(s.half.At)
	}
	b.launchRows(b.kernels.refine, []any{b.at(s.refined), half, b.at(s.gates), b.at(s.lengths), x, first},
		[]any{rows, b.channels, s.half.LD, b.how.Unit, b.backward})
}
