package oncuda

import "github.com/geoalign/geoalign/internal/cuda"

// backwardBlock returns what adds the gradients of a block behind its forward pass.
func (b *vectorsWork) backwardBlock() func() {
	x, c := b.how, b.c
	unite, compare, wholes := b.kernel("unite_slopes"), b.kernel("compare_slopes"), b.kernel("whole_slopes")
	begin := b.filterBackward
	if len(x.Steps) > 0 {
		begin = b.graphBackward
	}
	end, attention := begin(), b.attentionBackward()
	return func() {
		end()
		pairs, words, _, rows := b.sizes()
		b.launch(unite, 256, 0, []any{b.at(b.mapped[wordPart].values.At), b.at(b.mapped[wholePart].values.At),
			b.half(b.mapped[wordPart]), b.half(b.mapped[wholePart]), b.at(b.nodes.values.At), b.at(b.dnodes.values.At),
			b.at(b.nodeLengths)}, []any{rows, b.size, b.mapped[wordPart].read.LD})
		for k, l := range []Layer{wordPart: x.Local, wholePart: x.Global} {
			n := []int{words, pairs}[k]
			d := b.mapped[k]
			b.applySlopes(l, n, b.placed(b.squares[k]), b.placed(d.read), b.placed(d.values), b.placed(b.dsquares[k]),
				0)
		}
		dcontexts := any(nil)
		if b.metric() {
			dcontexts = b.at(b.dcontexts.At)
		}
		dfolded := b.squares[wordPart]
		compare.Enqueue(cuda.Grid{X: rows, Threads: 128, Shared: 4 * b.channels}, b.parameters([]any{
			c.Aux[0], b.at(dfolded.At), dcontexts, b.at(b.dsquares[wordPart].At), b.at(b.contextLengths),
			b.at(b.folded.At), b.at(b.contexts.At), c.In[1]}, []any{rows, b.channels, dfolded.LD})...)
		images, texts := b.now[imageSide], b.now[textSide]
		x0, y0 := images.from*b.channels, texts.from*b.channels
		wholes.Enqueue(cuda.Grid{X: images.count + texts.count, Threads: 256},
			cuda.MatrixOf(b.gradient(vectorsImages), x0, 0).At, cuda.MatrixOf(b.gradient(vectorsTexts), y0, 0).At,
			b.at(b.dsquares[wholePart].At), cuda.MatrixOf(c.In[vectorsImages], x0, 0).At,
			cuda.MatrixOf(c.In[vectorsTexts], y0, 0).At, images.count, texts.count, b.channels)
		attention()
	}
}

// attentionBackward returns what adds the gradients of rows through contexts and through the attention.
func (b *vectorsWork) attentionBackward() func() {
	attend := b.kernel("attend_slopes")
	return func() {
		b.contextSlopes(b.how.Similarity, b.squares[wordPart], 0)
		if b.metric() {
			b.contextSlopes(0, b.dcontexts, 1)
		}
		b.launch(attend, 128, b.slopesFloats(), []any{b.at(b.dproducts.At), b.at(b.products), b.at(b.weights),
			b.at(b.dweights)}, []any{b.dproducts.LD, b.how.Scale})
		b.addSlopes(b.how.Attention)
	}
}

// slopesFloats is the shared memory of attend_slopes.
func (b *vectorsWork) slopesFloats() int {
	return (b.Sides[textSide].Len + 2) * b.Sides[imageSide].Len
}

// contextSlopes sets, or with beta 1 adds, the gradients of weights from those of contexts of the rows of an operand,
// and adds those of the rows.
func (b *vectorsWork) contextSlopes(operand int, d cuda.Matrix, beta float32) {
	_, _, _, words := b.sizes()
	weights, step := b.attention()
	rows, _ := b.tokens(operand, imageSide)
	tokens, images := b.Sides[imageSide].Len, b.now[imageSide].count
	p := cuda.Product{TransB: true, M: words, N: tokens, K: b.channels, Beta: beta, Batch: images,
		StrideA: words * d.LD, StrideB: tokens * rows.LD, StrideC: tokens}
	cuda.Multiply(b.c, p, b.placed(d), rows, cuda.FloatsAt(b.at(b.dweights), b.ld), nil)
	p = cuda.Product{TransA: true, M: tokens, N: b.channels, K: words, Beta: 1, Batch: images,
		StrideA: step, StrideB: words * d.LD, StrideC: tokens * b.channels}
	cuda.Multiply(b.c, p, weights, b.placed(d), b.slopes(operand, imageSide), nil)
}
