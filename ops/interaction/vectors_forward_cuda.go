package interaction

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// forwardBlock returns what makes the scores of a block, in the backward pass all that they are made of.
func (b *vectorsOnCUDA) forwardBlock() func() error {
	x, c := b.how, b.c
	weigh, round, compare, unite := b.kernel("weigh"), b.kernel("round_rows"), b.kernel("compare"), b.kernel("unite")
	end := b.filterForward
	if len(x.steps) > 0 {
		end = b.graphForward
	}
	score := end()
	// attend makes the weights of words and the contexts.
	attend := func(rows int) error {
		if err := b.multiply(); err != nil {
			return err
		}
		s, weights := b.at(b.products[attentionSite]), b.at(b.weights)
		if err := b.launch(weigh, b.sides[imageSide].len, []any{weights, s}, []any{x.scale, false}); err != nil {
			return err
		}
		if a := b.attended; b.product != exec.Float32 {
			n := rows * b.most[imageSide]
			g := cuda.Grid{X: cuda.Blocks(n*a.ld, 256), Threads: 256}
			if err := round.Launch(g, b.at(a.rounded), weights, int64(n), a.cols, a.ld); err != nil {
				return err
			}
		}
		if err := b.context(0, b.contexts); err != nil || !b.metric() {
			return err
		}
		return b.context(x.similarity, b.folded)
	}
	return func() error {
		pairs, words, _, rows := b.sizes()
		if err := attend(rows); err != nil {
			return err
		}
		if err := b.pairs(compare, 256, 0, []any{b.at(b.squares[wordPart].rounded), b.at(b.squares[wholePart].rounded),
			b.at(b.contextLengths.values), b.at(b.folded.values), b.at(b.contexts.values), c.In[1], c.In[vectorsImages],
			c.In[vectorsTexts]}, []any{rows, b.channels, b.squares[wordPart].ld}); err != nil {
			return err
		}
		for k, l := range []layer{wordPart: x.local, wholePart: x.global} {
			n := []int{words, pairs}[k]
			if err := b.apply(l, n, b.factor(b.squares[k]), b.matrixOf(b.mapped[k])); err != nil {
				return err
			}
		}
		if err := b.pairs(unite, 256, 0, []any{b.at(b.nodes.values), b.half(b.nodes), b.at(b.nodeLengths.values),
			b.at(b.mapped[wordPart].values), b.at(b.mapped[wholePart].values)}, []any{rows, b.size, b.nodes.ld}); err != nil {
			return err
		}
		return score()
	}
}

// attention is the weights of the words of the block as products read them, those of the images behind each other in a row, and
// how far apart.
func (b *vectorsOnCUDA) attention() (m cuda.Matrix, step int) {
	if b.product == exec.Float32 {
		return floatsAt(b.at(b.weights), b.ld), b.sides[imageSide].len
	}
	return cuda.Matrix{At: b.at(b.attended.rounded), LD: b.most[imageSide] * b.attended.ld, Type: b.product}, b.attended.ld
}

// context makes the contexts of the words of the block for each image, of rows of an operand.
func (b *vectorsOnCUDA) context(operand int, to rowsOnCUDA) error {
	_, _, _, words := b.sizes()
	weights, step := b.attention()
	rows, _ := b.tokens(operand)
	tokens := b.sides[imageSide].len
	p := cuda.Product{M: words, N: b.channels, K: tokens, Batch: b.now[imageSide].count,
		StrideA: step, StrideB: tokens * rows.LD, StrideC: words * b.channels}
	return cuda.Multiply(b.c, p, weights, rows, b.matrixOf(to), nil)
}
