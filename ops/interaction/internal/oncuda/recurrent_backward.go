package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
)

// back returns the step of the gradients from that of all blocks.
func (b *recurrentWork) back(blocks cuda.Step) cuda.Step {
	dweight, dbias := b.c.Aux[b.Cross.Rows-1], b.c.Aux[b.Cross.Rows]
	return func() {
		cuda.Zero(dweight)
		blocks()
		rows, n := b.most[b.Query]*b.Sides[b.Query].Len, 2*b.channels
		b.kernels.sumRows.Enqueue(columnsGrid(n, 1), dbias, b.at(b.dbias), nil, rows, n, int64(n), false)
	}
}

// blockBack makes the steps of a block again, then goes through them from the last to the first.
func (b *recurrentWork) blockBack() {
	b.begin()
	for t := range b.how.Steps {
		b.attend(t)
		if b.last(t) {
			break
		}
		b.refine(t)
	}
	for t := b.how.Steps - 1; t >= 0; t-- {
		b.stepBack(t)
	}
	b.unmixRows(b.weights, b.how.Steps*b.queryRows())
	if now := b.now[b.Query]; now.from+now.count < b.count[b.Query] {
		return
	}
	b.addValues()
}

// stepBack goes back through step t. drefined and dgates are the gradients of what it made of the queries, and become
// those of what its queries were made of.
func (b *recurrentWork) stepBack(t int) {
	if !b.last(t) {
		b.weightSlopes()
	}
	b.stepSlopes(t)
	if !b.last(t) {
		b.addToValues(t)
	}
	if t == 0 {
		return // the rest goes through the products of the block
	}
	b.multipliedBack(t)
	b.refineBack(t - 1)
	if t == 1 {
		b.addFirst()
		return
	}
	b.addRefined(t - 1)
}

// weightSlopes makes the gradients of the weights of a step through the gates, d W k.
func (b *recurrentWork) weightSlopes() {
	rows, k := b.queryRows(), b.Sides[1-b.Query].Len
	d, values := b.placed(b.dgates), b.placed(b.valuesRead)
	p := cuda.Product{TransB: true, M: rows, N: k, K: 2 * b.channels, Batch: b.contexts(),
		StrideA: rows * d.LD, StrideB: k * values.LD, StrideC: k}
	cuda.Multiply(b.c, p, d, values, cuda.FloatsAt(b.at(b.dweights), b.ld), nil)
}

// stepSlopes makes the gradients of the products that step t reads.
func (b *recurrentWork) stepSlopes(t int) {
	var dweights, attended any
	if !b.last(t) {
		dweights, attended = b.at(b.dweights), b.at(b.attended.At)
	}
	d, ldd, columns, dscored := b.at(b.dstep.At), b.dstep.LD, b.columns(), any(nil)
	if t == 0 {
		d, ldd, columns, dscored = b.dattended(), b.ldd(), b.Sides[1-b.Query].Len, b.dscored()
	}
	b.launch(b.kernels.slopes, b.sharedFloats(),
		[]any{d, dscored, attended, b.at(b.sums), b.at(b.ofStep(b.mixed, t)), b.at(b.dnorm), dweights,
			b.at(b.ofStep(b.weights, t)), b.at(b.taken[t].products), b.at(b.products[similaritySite]), b.at(b.norms),
			b.c.In[b.how.Weight+2]},
		[]any{b.queryRows(), ldd, columns, b.attended.LD, b.columns(), b.Scale, b.Pool, !b.last(t), t == 0})
}

// addToValues adds the gradients of W k, weights^T times those of gates.
func (b *recurrentWork) addToValues(t int) {
	rows, k, n := b.queryRows(), b.Sides[1-b.Query].Len, 2*b.channels
	d := b.placed(b.dgates)
	p := cuda.Product{TransA: true, M: k, N: n, K: rows, Batch: b.contexts(), StrideA: b.columns(),
		StrideB: rows * d.LD, StrideC: k * n}
	if b.now[b.Query].from > 0 || !b.last(t+1) {
		p.Beta = 1
	}
	cuda.Multiply(b.c, p, b.placed(b.attended), d, cuda.FloatsAt(b.at(b.dvalues), n), nil)
}

// multipliedBack adds the gradients of the queries of step t, but the first, and of the context through their products.
func (b *recurrentWork) multipliedBack(t int) {
	rows, k, operand := b.queryRows(), b.Sides[1-b.Query].Len, b.Sites[attentionSite][1-b.Query]
	contexts, _ := b.tokens(operand)
	queries, _ := b.queries(t)
	d := b.placed(b.dstep)
	p := cuda.Product{M: rows, N: b.channels, K: k, Batch: b.contexts(), StrideA: b.columns(), StrideB: k * contexts.LD,
		StrideC: rows * b.channels}
	if !b.last(t) {
		p.Beta = 1
	}
	cuda.Multiply(b.c, p, d, contexts, cuda.FloatsAt(b.at(b.drefined), b.channels), nil)
	p = cuda.Product{TransA: true, M: k, N: b.channels, K: rows, Batch: b.contexts(), StrideA: b.columns(),
		StrideB: rows * queries.LD, StrideC: k * b.channels, Beta: 1}
	cuda.Multiply(b.c, p, d, queries, b.slopes(operand), nil)
}

// refineBack goes back through the gates of step t: drefined becomes the gradient of its queries, but for the part
// through the gates, of which dgates become the gradients.
func (b *recurrentWork) refineBack(t int) {
	s := b.taken[t]
	_, before := b.queries(t)
	b.launchRows(b.kernels.gateSlopes, []any{b.at(b.drefined), b.at(b.dgates.At), b.at(s.gates), b.at(s.lengths),
		b.at(s.refined), before}, []any{b.queryRows(), b.channels, b.dgates.LD, b.how.Unit, t == 0})
}

// addRefined adds the gradients of the queries of step t, but the first, and of the memory unit through the gates.
func (b *recurrentWork) addRefined(t int) {
	b.addToBias(t, nil)
	queries, _ := b.queries(t)
	b.addThrough(false, b.contexts()*b.queryRows(), b.placed(b.dgates), queries,
		cuda.FloatsAt(b.at(b.drefined), b.channels))
}

// addFirst is addRefined for the first step: its queries and W q + b are those of all contexts.
func (b *recurrentWork) addFirst() {
	d, to, rows := b.placed(b.dfirst), b.slopes(b.Query), b.queryRows()
	b.addToBias(0, d.At)
	g := cuda.Grid{X: rows, Y: cuda.Blocks(b.channels, 256), Threads: 256}
	b.kernels.sumQueries.Enqueue(g, to.At, b.at(b.drefined), b.contexts(), rows, b.channels)
	queries, _ := b.queries(0)
	b.addThrough(false, rows, d, queries, to)
}

// addToBias adds the gradients of the gates of step t to those of the bias, and makes their sum over the contexts for
// first.
func (b *recurrentWork) addToBias(t int, first any) {
	rows, n := b.queryRows(), 2*b.channels
	begun := b.now[0].from > 0 || b.now[1].from > 0 || !b.last(t+1)
	b.kernels.sumGates.Enqueue(cuda.Grid{X: rows, Y: cuda.Blocks(n, 256), Threads: 256}, b.at(b.dbias), first,
		b.at(b.dgates.At), b.contexts(), rows, n, b.dgates.LD, begun)
}

// addValues adds the gradients of the rows of the context and of the memory unit through W k.
func (b *recurrentWork) addValues() {
	context, rows := b.tokens(1 - b.Query)
	b.roundRows(b.valuesRead, b.dvalues, rows)
	b.addThrough(true, rows, b.placed(b.valuesRead), context, b.slopes(1-b.Query))
}

// addThrough adds the gradients of n rows x and of columns of the weight through their products, whose gradient is d
// (n, 2C).
func (b *recurrentWork) addThrough(ofContext bool, n int, d, x, dx cuda.Matrix) {
	from, c := 0, b.channels
	if ofContext {
		from = c
	}
	cuda.Multiply(b.c, cuda.Product{M: n, N: c, K: 2 * c, Beta: 1}, d, b.weight(ofContext), dx, nil)
	dweight := cuda.MatrixOf(b.c.Aux[b.Cross.Rows-1], from, 2*c)
	cuda.Multiply(b.c, cuda.Product{TransA: true, M: 2 * c, N: c, K: n, Beta: 1}, d, x, dweight, nil)
}
