package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var crossSource = cuda.NewSource(files, "cross", "cross.cu")

// blockLimits are those of a block of pairs on the CUDA device: tokens of the queries and of the context, as long as
// sequences fit, and products of tokens, or one pair. The context has no more tokens than their products with each
// other allow either.
type BlockLimits struct{ Queries, Context, Products int }

// crossLimits are those of cross attention. A variable for tests.
var CrossLimits = BlockLimits{Queries: 4096, Context: 64 << 10, Products: 4 << 20}

// mostShared is the shared memory that every device has for a block of threads that asks for it.
const mostShared = 160 << 10

// pairsWork is a step on the CUDA device for scores of all pairs by the products of their tokens, padding too: what
// takes no part is 0 in the matrices that products read. Rows of padding must be finite, as those of towers are: they
// are multiplied by these zeros, while the host does not read them. A block is the pairs of some sequences of the
// queries with some of the context.
type pairsWork struct {
	*Cross
	c        *exec.DeviceCall
	source   *cuda.Source // of the kernels
	backward bool
	channels int
	product  exec.Type // of what products over channels read
	count    [2]int    // sequences of each side
	most     [2]int    // of each side in a block
	room     *cuda.Room
	base     cuda.Pointer
	parts    []cuda.Part
	factors  *cuda.Factors
	rows     []cuda.Matrix // of each operand of rows

	// In scratch. Rows of products have ld values.
	ld                                        int
	products                                  [2]cuda.Pointer // of each site
	dproducts                                 [2]cuda.Matrix  // that products read
	weights, mixed, gram, norms, dnorm, dgram cuda.Pointer
	dgramRead                                 cuda.Matrix // dgram as products read it, where that is rounded

	round *cuda.Kernel
	now   [2]crossSpan // the block
}

// crossSpan are sequences of a side.
type crossSpan struct{ from, count int }

// begin begins the step of cross attention or of what builds on it.
func (x *Cross) begin(c *exec.DeviceCall, backward bool) *pairsWork {
	return x.beginBlocks(c, backward, CrossLimits)
}

// beginBlocks is begin with other limits, and with parts of operands that are multiplied besides: they follow the
// operands of rows in b.rows.
func (x *Cross) beginBlocks(c *exec.DeviceCall, backward bool, limits BlockLimits, besides ...cuda.Part) *pairsWork {
	b := &pairsWork{Cross: x, c: c, source: crossSource, backward: backward, channels: c.In[0].Shape[1],
		product: cuda.ProductType(c)}
	q, k := x.Query, 1-x.Query
	for side := range b.count {
		b.count[side] = c.In[side].Shape[0] / x.Sides[side].Len
	}
	b.most[q] = min(b.count[q], max(1, limits.Queries/x.Sides[q].Len))
	length := x.Sides[k].Len
	tokens := min(limits.Context, limits.Products/max(length, b.most[q]*x.Sides[q].Len))
	b.most[k] = min(b.count[k], max(1, tokens/length))
	for operand := range b.Cross.Rows {
		b.parts = append(b.parts, cuda.Part{In: operand, Rows: c.In[operand].Shape[0], Cols: b.channels,
			Type: b.product})
	}
	b.parts = append(b.parts, besides...)
	b.room = cuda.NewRoom(c, b.parts...)
	b.lay()
	return b
}

// lay asks for the memory of a block.
func (b *pairsWork) lay() {
	q, k := b.Query, 1-b.Query
	rows, cols, length := b.most[q]*b.Sides[q].Len, b.most[k]*b.Sides[k].Len, b.Sides[k].Len
	b.ld = (cols + 7) / 8 * 8
	for site := range b.products {
		if site == similaritySite && b.shared() {
			b.products[site], b.dproducts[site] = b.products[attentionSite], b.dproducts[attentionSite]
			break
		}
		if b.products[site] = b.matrix(); b.backward {
			b.dproducts[site] = b.read(rows, cols)
		}
	}
	b.weights, b.mixed = b.matrix(), b.matrix()
	b.gram, b.norms = b.floats(cols*length), b.floats(b.count[q]*b.Sides[q].Len)
	if b.backward {
		b.dnorm, b.dgram, b.dgramRead = b.floats(b.most[k]*rows), b.floats(cols*length), b.rounded(cols, length)
	}
}

// floats asks for n floats.
func (b *pairsWork) floats(n int) cuda.Pointer { return b.room.Take(4 * int64(n)) }

// matrix asks for a matrix of all products of a block.
func (b *pairsWork) matrix() cuda.Pointer {
	return b.room.Take(4 * int64(b.most[b.Query]*b.Sides[b.Query].Len) * int64(b.ld))
}

// floatRows asks for rows of floats, one behind the other.
func (b *pairsWork) floatRows(n, cols int) cuda.Matrix { return cuda.FloatsAt(b.floats(n*cols), cols) }

// read asks for rows in the type that products read, which begin at multiples of 8 values: products are faster then.
func (b *pairsWork) read(n, cols int) cuda.Matrix {
	m := cuda.Matrix{LD: (cols + 7) / 8 * 8, Type: b.product}
	bytes := int64(4)
	if b.product == exec.BFloat16 {
		bytes = 2
	}
	m.At = b.room.Take(bytes * int64(n) * int64(m.LD))
	return m
}

// rounded is read for rows that are there as floats too; where products read these it asks for none.
func (b *pairsWork) rounded(n, cols int) cuda.Matrix {
	if b.product == exec.Float32 {
		return cuda.Matrix{}
	}
	return b.read(n, cols)
}

// scratch takes what was asked for.
func (b *pairsWork) scratch() {
	b.base = cuda.Scratch(b.c, b.room.Bytes)
	b.factors = cuda.NewFactors(b.c, b.parts...)
}

// at is memory that was asked for.
func (b *pairsWork) at(p cuda.Pointer) cuda.Pointer { return b.base + p }

// placed are rows that were asked for.
func (b *pairsWork) placed(m cuda.Matrix) cuda.Matrix {
	m.At = b.at(m.At)
	return m
}

// kernel is one of the source of the step, which begins with cross.cu. D is the type of what products read.
func (b *pairsWork) kernel(name string) *cuda.Kernel {
	return cuda.Load(b.c, b.source, name, cuda.Type("D", exec.Operand{Spec: exec.Spec{Type: b.product}}))
}

// launch runs a kernel of pairs: PAIRS stand between the parameters before and behind.
func (b *pairsWork) launch(k *cuda.Kernel, shared int, before, behind []any) {
	b.launchOn(k, cuda.Grid{Shared: 4 * shared}, before, behind)
}

// launchOn is launch with all of a grid but its blocks of pairs.
func (b *pairsWork) launchOn(k *cuda.Kernel, g cuda.Grid, before, behind []any) {
	g.X, g.Threads = b.now[b.Query].count*b.now[1-b.Query].count, 128
	k.Enqueue(g, b.parameters(before, behind)...)
}

// parameters are those of a kernel of pairs.
func (b *pairsWork) parameters(before, behind []any) []any {
	q, c := b.Query, 1-b.Query
	steps := [2]int64{int64(b.count[1]), 1} // of images and of texts in the scores
	args := append(before, b.lengths(q), b.lengths(c), b.Sides[q].Len, b.Sides[c].Len, b.Sides[q].First,
		b.Sides[c].First,
		b.now[q].from, b.now[c].from, b.now[c].count, b.ld, steps[q], steps[c])
	return append(args, behind...)
}

// lengths is the operand of the lengths of a side, nil where there is none.
func (b *pairsWork) lengths(side int) any {
	if k := b.Sides[side].Lengths; k >= 0 {
		return b.c.In[k]
	}
	return nil
}

// gradient returns where the gradient of an operand goes.
func (b *pairsWork) gradient(operand int) exec.Operand {
	if operand == 0 {
		return b.c.Out
	}
	return b.c.Aux[operand-1]
}

// run returns the step that works on all blocks: attend when their products are made, which in the backward pass leaves
// gradients there.
func (b *pairsWork) run(attend func()) cuda.Step {
	q, k := b.Query, 1-b.Query
	norms, addNorms := b.kernel("row_norms"), b.kernel("add_norms")
	b.round = b.kernel("round_rows")
	begin := func() {
		b.rows = b.factors.Place()
		if b.backward {
			for operand := range b.Cross.Rows {
				cuda.Zero(b.gradient(operand))
			}
		}
		n := b.count[q] * b.Sides[q].Len
		norms.Enqueue(cuda.Grid{X: cuda.Blocks(n, 4), Threads: 128}, b.at(b.norms), b.c.In[q], n, b.channels)
	}
	block := func() {
		b.multiply()
		attend()
		if !b.backward {
			return
		}
		b.addSlopes()
		first, rows := b.now[q].from*b.Sides[q].Len*b.channels, b.now[q].count*b.Sides[q].Len
		addNorms.Enqueue(cuda.Grid{X: rows, Threads: 128}, cuda.MatrixOf(b.gradient(q), first, 0).At,
			cuda.MatrixOf(b.c.In[q], first, 0).At,
			b.at(b.dnorm), b.now[k].count, rows, b.channels)
	}
	return func() {
		begin()
		for from := 0; from < b.count[k]; from += b.most[k] {
			b.now[k] = crossSpan{from, min(b.most[k], b.count[k]-from)}
			b.grams(k, b.gram)
			for at := 0; at < b.count[q]; at += b.most[q] {
				b.now[q] = crossSpan{at, min(b.most[q], b.count[q]-at)}
				block()
			}
			if b.backward {
				b.addGrams(k, b.dgram, b.dgramRead)
			}
		}
	}
}

// tokens are the rows of the block of an operand of rows.
func (b *pairsWork) tokens(operand int) (cuda.Matrix, int) {
	side := b.Of[operand]
	m, span, n := b.rows[operand], b.now[side], b.Sides[side].Len
	return m.From(span.from * n * m.LD), span.count * n
}

// slopes are where the gradients of those go.
func (b *pairsWork) slopes(operand int) cuda.Matrix {
	side := b.Of[operand]
	return cuda.MatrixOf(b.gradient(operand), b.now[side].from*b.Sides[side].Len*b.channels, b.channels)
}

// multiply makes the products of the block at each site.
func (b *pairsWork) multiply() {
	for site, operands := range b.Sites {
		if site == similaritySite && b.shared() {
			continue
		}
		queries, m := b.tokens(operands[b.Query])
		contexts, n := b.tokens(operands[1-b.Query])
		p := cuda.Product{TransB: true, M: m, N: n, K: b.channels}
		cuda.Multiply(b.c, p, queries, contexts, cuda.FloatsAt(b.at(b.products[site]), b.ld), nil)
	}
}

// grams makes the products of the tokens of each sequence of a side of the block with each other.
func (b *pairsWork) grams(side int, to cuda.Pointer) {
	rows, _ := b.tokens(side)
	n := b.Sides[side].Len
	p := cuda.Product{TransB: true, M: n, N: n, K: b.channels, Batch: b.now[side].count, StrideA: n * rows.LD,
		StrideB: n * rows.LD, StrideC: n * n}
	cuda.Multiply(b.c, p, rows, rows, cuda.FloatsAt(b.at(to), n), nil)
}

// mix makes weights times G.
func (b *pairsWork) mix(weights cuda.Pointer) { b.mixTo(b.mixed, weights) }

// mixTo is mix to another matrix.
func (b *pairsWork) mixTo(mixed, weights cuda.Pointer) {
	q, k := b.now[b.Query].count*b.Sides[b.Query].Len, b.Sides[1-b.Query].Len
	p := cuda.Product{M: q, N: k, K: k, Batch: b.now[1-b.Query].count, StrideA: k, StrideB: k * k, StrideC: k}
	cuda.Multiply(b.c, p, cuda.FloatsAt(b.at(weights), b.ld), cuda.FloatsAt(b.at(b.gram), k),
		cuda.FloatsAt(b.at(mixed), b.ld), nil)
}

// unmix adds the gradient of G, weights^T times what the kernels have made of mixed.
func (b *pairsWork) unmix(weights cuda.Pointer) {
	b.unmixRows(weights, b.now[b.Query].count*b.Sides[b.Query].Len)
}

// unmixRows is unmix for weights of more rows than those of the block.
func (b *pairsWork) unmixRows(weights cuda.Pointer, rows int) {
	k := b.Sides[1-b.Query].Len
	p := cuda.Product{TransA: true, M: k, N: k, K: rows, Batch: b.now[1-b.Query].count, StrideA: k, StrideB: k,
		StrideC: k * k}
	if b.now[b.Query].from > 0 {
		p.Beta = 1
	}
	cuda.Multiply(b.c, p, cuda.FloatsAt(b.at(weights), b.ld), cuda.FloatsAt(b.at(b.mixed), b.ld),
		cuda.FloatsAt(b.at(b.dgram), k), nil)
}

// addSlopes adds the gradients of rows through the products of the block.
func (b *pairsWork) addSlopes() {
	for site, operands := range b.Sites {
		if site == similaritySite && b.shared() {
			continue
		}
		q, k := operands[b.Query], operands[1-b.Query]
		queries, m := b.tokens(q)
		contexts, n := b.tokens(k)
		d := b.placed(b.dproducts[site])
		cuda.Multiply(b.c, cuda.Product{M: m, N: b.channels, K: n, Beta: 1}, d, contexts, b.slopes(q),
			nil)
		cuda.Multiply(b.c, cuda.Product{TransA: true, M: n, N: b.channels, K: m, Beta: 1}, d, queries, b.slopes(k),
			nil)
	}
}

// addGrams adds the gradients of the rows of a side of the block through G, 2 dG k. rounded is for dG as products read
// it.
func (b *pairsWork) addGrams(side int, dgram cuda.Pointer, rounded cuda.Matrix) {
	n, count := b.Sides[side].Len, b.now[side].count
	d := cuda.FloatsAt(b.at(dgram), n)
	if b.product == exec.BFloat16 {
		d = b.placed(rounded)
		b.round.Enqueue(cuda.Grid{X: cuda.Blocks(count*n*d.LD, 256), Threads: 256}, d.At, b.at(dgram), int64(count*n),
			n, d.LD)
	}
	rows, _ := b.tokens(side)
	p := cuda.Product{M: n, N: b.channels, K: n, Alpha: 2, Beta: 1, Batch: count, StrideA: n * d.LD,
		StrideB: n * rows.LD,
		StrideC: n * b.channels}
	cuda.Multiply(b.c, p, d, rows, b.slopes(side), nil)
}

// sharedFloats is the shared memory of the kernels of slopes.
func (x *Cross) sharedFloats() int {
	q, k := x.Sides[x.Query].Len, x.Sides[1-x.Query].Len
	return q*k + 2*k + 3*q
}

// fits says whether the kernels have the memory that they need.
func (x *Cross) fits() bool { return 4*x.sharedFloats() <= mostShared }

// dattended is where the gradients of the products go that the attention reads, in rows of ldd values.
func (b *pairsWork) dattended() cuda.Pointer { return b.at(b.dproducts[attentionSite].At) }

func (b *pairsWork) ldd() int { return b.dproducts[attentionSite].LD }

// dscored is where those of the products go that the score reads, nil where the attention reads them too.
func (b *pairsWork) dscored() any {
	if b.shared() {
		return nil
	}
	return b.at(b.dproducts[similaritySite].At)
}
