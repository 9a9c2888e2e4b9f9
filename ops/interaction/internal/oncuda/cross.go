package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// mostShared is the shared memory that every device has for a block of threads that asks for it.
const mostShared = 160 << 10

// pairsWork is a step on the CUDA device for scores of all pairs by the products of their tokens, padding too: what
// takes no part is 0 in the matrices that products read. Rows of padding must be finite, as those of towers are: they
// are multiplied by these zeros, while the host does not read them. A block is the pairs of some texts, the queries, with
// some images.
type pairsWork struct {
	Sides    [2]Side // images, texts
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
	ld                int
	products, weights cuda.Pointer
	dproducts         cuda.Matrix // that products read

	now [2]crossSpan // the block
}

// crossSpan are sequences of a side.
type crossSpan struct{ from, count int }

// floats asks for n floats.
func (b *pairsWork) floats(n int) cuda.Pointer { return b.room.Take(4 * int64(n)) }

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

// launch runs a kernel with a block of threads for each pair: PAIRS stand between the parameters before and behind.
func (b *pairsWork) launch(k *cuda.Kernel, threads, shared int, before, behind []any) {
	g := cuda.Grid{X: b.now[textSide].count * b.now[imageSide].count, Threads: threads, Shared: 4 * shared}
	k.Enqueue(g, b.parameters(before, behind)...)
}

// parameters are those of a kernel of pairs.
func (b *pairsWork) parameters(before, behind []any) []any {
	const q, c = textSide, imageSide
	args := append(before, b.lengths(q), b.lengths(c), b.Sides[q].Len, b.Sides[c].Len, b.Sides[q].First,
		b.Sides[c].First, b.now[q].from, b.now[c].from, b.now[c].count, b.ld, int64(1), int64(b.count[textSide]))
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

// tokens are the rows of the block of an operand that is rows of a side, and how many.
func (b *pairsWork) tokens(operand, side int) (cuda.Matrix, int) {
	m, span, n := b.rows[operand], b.now[side], b.Sides[side].Len
	return m.From(span.from * n * m.LD), span.count * n
}

// slopes are where the gradients of those go.
func (b *pairsWork) slopes(operand, side int) cuda.Matrix {
	return cuda.MatrixOf(b.gradient(operand), b.now[side].from*b.Sides[side].Len*b.channels, b.channels)
}

// multiply makes the products of the words of the block with rows of its images.
func (b *pairsWork) multiply(images int) {
	queries, m := b.tokens(textSide, textSide)
	contexts, n := b.tokens(images, imageSide)
	p := cuda.Product{TransB: true, M: m, N: n, K: b.channels}
	cuda.Multiply(b.c, p, queries, contexts, cuda.FloatsAt(b.at(b.products), b.ld), nil)
}

// addSlopes adds the gradients of rows through those products.
func (b *pairsWork) addSlopes(images int) {
	queries, m := b.tokens(textSide, textSide)
	contexts, n := b.tokens(images, imageSide)
	d := b.placed(b.dproducts)
	cuda.Multiply(b.c, cuda.Product{M: m, N: b.channels, K: n, Beta: 1}, d, contexts, b.slopes(textSide, textSide), nil)
	cuda.Multiply(b.c, cuda.Product{TransA: true, M: n, N: b.channels, K: m, Beta: 1}, d, queries,
		b.slopes(images, imageSide), nil)
}
