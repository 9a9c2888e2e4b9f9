package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// apply sets y (n, out) to the results of a layer for rows x (n, in).
func (b *vectorsWork) apply(l Layer, n int, x, y cuda.Matrix) {
	w := b.c.In[l.Weight].Shape
	var bias *cuda.Matrix
	if l.Bias > 0 {
		m := cuda.MatrixOf(b.c.In[l.Bias], 0, 0)
		bias = &m
	}
	cuda.Multiply(b.c, cuda.Product{TransB: true, M: n, N: w[0], K: w[1]}, x, b.rows[l.Weight], y, bias)
}

// applySlopes adds the gradients of a layer from rows x and dy, and sets dx to dy W + beta dx. summed are dy whose sum
// is the gradient of the bias: floats where there are some.
func (b *vectorsWork) applySlopes(l Layer, n int, x, dy, summed, dx cuda.Matrix, beta float32) {
	w := b.c.In[l.Weight].Shape
	p := cuda.Product{TransA: true, M: w[0], N: w[1], K: n, Beta: 1}
	cuda.Multiply(b.c, p, dy, x, cuda.MatrixOf(b.gradient(l.Weight), 0, w[1]), nil)
	b.addColumns(l.Bias, summed, n)
	cuda.Multiply(b.c, cuda.Product{M: n, N: w[1], K: w[0], Beta: beta}, dy, b.rows[l.Weight], dx, nil)
}

// columnParts is how many parts rows have that are added up over columns.
const columnParts = 64

// columnSums are sums (columnParts, cols) of each part of the rows of all blocks so far, which together are the
// gradient of an operand.
type columnSums struct {
	parts cuda.Pointer
	cols  int
}

// layColumns asks for the memory of the sums, for the biases of layers that are products and the weights and biases of
// others.
func (b *vectorsWork) layColumns() {
	b.columns = map[int]columnSums{}
	lay := func(operands ...int) {
		for _, k := range operands {
			if n := b.c.In[k].Shape.TotalSize(); k > 0 {
				b.columns[k] = columnSums{b.floats(columnParts * n), n}
			}
		}
	}
	for _, l := range b.how.products() {
		lay(l.Bias)
	}
	lay(b.how.Score.Weight, b.how.Score.Bias, b.how.Gate.Weight, b.how.Gate.Bias)
}

// firstBlock says whether there are no sums before those of this block.
func (b *vectorsWork) firstBlock() bool {
	return b.now[imageSide].from == 0 && b.now[textSide].from == 0
}

// addColumns adds the sums over n rows to those of an operand, unless it is 0.
func (b *vectorsWork) addColumns(operand int, x cuda.Matrix, n int) {
	if operand == 0 {
		return
	}
	to, add := b.columns[operand], !b.firstBlock()
	if x.Type == exec.Float32 {
		b.sumWeighted.Enqueue(columnsGrid(to.cols, columnParts), b.at(to.parts), x.At, nil, n, to.cols, int64(x.LD),
			add)
		return
	}
	b.sumRows.Enqueue(columnsGrid(to.cols, columnParts), b.at(to.parts), x.At, n, to.cols, int64(x.LD), add)
}

// addWeighted adds the gradients of the weight and bias of a layer with one result, from the gradients d (n) of results
// and n rows x of floats.
func (b *vectorsWork) addWeighted(l Layer, d cuda.Pointer, x cuda.Matrix, n int) {
	to := b.columns[l.Weight]
	b.sumWeighted.Enqueue(columnsGrid(to.cols, columnParts), b.at(to.parts), x.At, d, n, to.cols, int64(x.LD),
		!b.firstBlock())
	if l.Bias == 0 {
		return
	}

	to = b.columns[l.Bias]
	b.sumWeighted.Enqueue(columnsGrid(1, columnParts), b.at(to.parts), d, nil, n, 1, int64(1), !b.firstBlock())
}

// columnsGrid is that of sums over columns, for so many parts of the rows.
func columnsGrid(cols, parts int) cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(cols, 32), Y: parts, Threads: 256}
}

// addParts sets the gradients that are sums over columns.
func (b *vectorsWork) addParts() {
	if b.count[imageSide] == 0 || b.count[textSide] == 0 {
		return
	}
	for k := b.how.Layers; k < b.how.Floats; k++ {
		if from, ok := b.columns[k]; ok {
			g := cuda.Grid{X: cuda.Blocks(from.cols, 256), Threads: 256}
			b.sumParts.Enqueue(g, b.gradient(k), b.at(from.parts), columnParts, from.cols)
		}
	}
}
