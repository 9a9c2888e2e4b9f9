package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// forwardBlock returns what makes the scores of a block, in the backward pass all that they are made of.
func (b *vectorsWork) forwardBlock() func() {
	x, c := b.how, b.c
	weigh, round, compare, unite := b.kernel("weigh"), b.kernel("round_rows"), b.kernel("compare"), b.kernel("unite")
	end := b.filterForward
	if len(x.Steps) > 0 {
		end = b.graphForward
	}
	score := end()
	// attend makes the weights of words and the contexts.
	attend := func(rows int) {
		b.multiply(x.Attention)
		s, weights := b.at(b.products), b.at(b.weights)
		b.launch(weigh, 128, b.Sides[imageSide].Len, []any{weights, s}, []any{x.Scale})
		if a := b.attended; b.product != exec.Float32 {
			n := rows * b.most[imageSide]
			round.Enqueue(cuda.Each(n*a.LD), b.at(a.At), weights, int64(n), b.Sides[imageSide].Len, a.LD)
		}
		b.context(0, b.contexts)
		if !b.metric() {
			return
		}

		b.context(x.Similarity, b.folded)
	}
	return func() {
		pairs, words, _, rows := b.sizes()
		attend(rows)
		b.launch(compare, 256, 0, []any{b.at(b.squares[wordPart].At), b.at(b.squares[wholePart].At),
			b.at(b.contextLengths), b.at(b.folded.At), b.at(b.contexts.At), c.In[1], c.In[vectorsImages],
			c.In[vectorsTexts]}, []any{rows, b.channels, b.squares[wordPart].LD})
		for k, l := range []Layer{wordPart: x.Local, wholePart: x.Global} {
			n := []int{words, pairs}[k]
			b.apply(l, n, b.placed(b.squares[k]), b.placed(b.mapped[k].values))
		}
		b.launch(unite, 256, 0, []any{b.at(b.nodes.values.At), b.half(b.nodes), b.at(b.nodeLengths),
			b.at(b.mapped[wordPart].values.At), b.at(b.mapped[wholePart].values.At)},
			[]any{rows, b.size, b.nodes.read.LD})
		score()
	}
}

// attention is the weights of the words of the block as products read them, those of the images behind each other in a
// row, and how far apart.
func (b *vectorsWork) attention() (m cuda.Matrix, step int) {
	if b.product == exec.Float32 {
		return cuda.FloatsAt(b.at(b.weights), b.ld), b.Sides[imageSide].Len
	}
	m, step = b.placed(b.attended), b.attended.LD
	m.LD *= b.most[imageSide]
	return m, step
}

// context makes the contexts of the words of the block for each image, of rows of an operand.
func (b *vectorsWork) context(operand int, to cuda.Matrix) {
	_, _, _, words := b.sizes()
	weights, step := b.attention()
	rows, _ := b.tokens(operand, imageSide)
	tokens := b.Sides[imageSide].Len
	p := cuda.Product{M: words, N: b.channels, K: tokens, Batch: b.now[imageSide].count,
		StrideA: step, StrideB: tokens * rows.LD, StrideC: words * b.channels}
	cuda.Multiply(b.c, p, weights, rows, b.placed(to), nil)
}
