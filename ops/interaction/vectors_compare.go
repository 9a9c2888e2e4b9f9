package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Parts of a pair.
const (
	wordPart = iota
	wholePart
)

// compare attends, and squares the differences of words from their contexts and of the wholes.
func (b *vectorsBlock) compare(worker, lo, hi int) {
	c := b.channels
	for i := lo; i < hi; i++ {
		p := b.pair(i)
		whole := b.differences[wholePart][i*c:][:c]
		vector.Sub(whole, b.whole(vectorsImages, p.image), b.whole(vectorsTexts, p.text))
		vector.Mul(b.squares[wholePart][i*c:][:c], whole, whole)
		e, squares := b.differences[wordPart][p.word*c:][:p.words*c], b.squares[wordPart][p.word*c:][:p.words*c]
		if p.empty {
			clear(squares)
			continue
		}
		a := b.attend(worker, p)
		b.context(worker, b.similarity, p, &a, e)
		unfolded := e
		if b.similarity != 0 { // lengths are those before the metric
			unfolded = squares
			b.context(worker, 0, p, &a, unfolded)
		}
		words := b.wordsOf(p)
		for r := range p.words {
			b.contexts[p.word+r] = length(unfolded[r*c:][:c])
			row := e[r*c:][:c]
			vector.Scale(row, 1/(b.contexts[p.word+r]+vectorsEps), row)
			vector.Sub(row, row, words[r*c:][:c])
		}
		vector.Mul(squares, e, e)
	}
}

// wordsOf returns the rows of the words of a pair.
func (b *vectorsBlock) wordsOf(p vectorsPair) []float32 {
	rows, _ := b.rowsOf(b.c.In[1].F32, 1, p.text)
	return rows
}

// whole returns the vector of an image or text.
func (b *vectorsBlock) whole(operand, i int) []float32 {
	return b.c.In[operand].F32[i*b.channels:][:b.channels]
}

// attendingOf returns the memory of the attention of a pair.
func (b *vectorsBlock) attendingOf(p vectorsPair) attending {
	lo, hi := b.sides[0].span(b.c, p.image)
	m := carve{memory: b.attended[p.node*attendingFloats(0, b.sides[0].len):]}
	return attendingIn(&m, p.words, hi-lo)
}

// attend makes the attention of the words of a pair.
func (b *vectorsBlock) attend(worker int, p vectorsPair) attending {
	a := b.attendingOf(p)
	rows, _ := b.rowsOf(b.c.In[b.attention].F32, 0, p.image)
	b.multiply(worker, false, true, a.q, a.k, b.channels, b.wordsOf(p), rows, 0, a.scores)
	a.weigh(a.scores, a.k, b.scale)
	return a
}

// context sets the contexts (q, C) of a pair, made of the rows of an operand.
func (b *vectorsBlock) context(worker, operand int, p vectorsPair, a *attending, to []float32) {
	rows, _ := b.rowsOf(b.c.In[operand].F32, 0, p.image)
	b.multiply(worker, false, false, a.q, b.channels, a.k, a.weights, rows, 0, to)
}

func length(row []float32) float32 { return float32(math.Sqrt(vector.SumSq(row))) }

// multiply sets c (m, n) to a b + beta c on one thread; a transposed matrix is stored so.
func (b *vectorsBlock) multiply(worker int, transA, transB bool, m, n, k int, x, y []float32, beta float32,
	to []float32) {
	lda, ldb := k, n
	if transA {
		lda = m
	}
	if transB {
		ldb = k
	}
	p := b.serial[worker]
	p.TransA, p.TransB, p.Beta, p.M, p.N, p.K = transA, transB, beta, m, n, k
	p.A, p.B, p.C, p.LDC = gemm.Matrix{F32: x, LD: lda}, gemm.Matrix{F32: y, LD: ldb}, to, n
	b.c.Engine.MultiplySerial(p)
}

// compareSlopes turns the gradients of squares into those of the products of attention, in
// slopes, of contexts under the metric, in differences, and of contexts through their lengths, in
// squares. Those of the differences of wholes stay in differences.
func (b *vectorsBlock) compareSlopes(worker, lo, hi int) {
	c := b.channels
	for i := lo; i < hi; i++ {
		p := b.pair(i)
		whole := b.differences[wholePart][i*c:][:c]
		vector.Mul(whole, whole, b.squares[wholePart][i*c:][:c])
		vector.Scale(whole, 2, whole)
		if p.empty {
			continue
		}
		a, words := b.attendingOf(p), b.wordsOf(p)
		dfolded, dcontexts := b.differences[wordPart][p.word*c:][:p.words*c], b.squares[wordPart][p.word*c:][:p.words*c]
		along := b.along[p.word:][:p.words]
		for r := range p.words {
			e, d := dfolded[r*c:][:c], dcontexts[r*c:][:c]
			vector.Mul(d, d, e)
			length := b.contexts[p.word+r]
			inverse := 1 / (length + vectorsEps)
			if along[r] = 0; length > 0 {
				along[r] = -2 * inverse / length * (vector.Dot(d, e) + vector.Dot(d, words[r*c:][:c]))
			}
			vector.Scale(e, 2*inverse, d)
		}
		b.context(worker, 0, p, &a, dcontexts)
		for r, v := range along {
			vector.Scale(dcontexts[r*c:][:c], v, dcontexts[r*c:][:c])
		}
		rows, _ := b.rowsOf(b.c.In[0].F32, 0, p.image)
		folded, _ := b.rowsOf(b.c.In[b.similarity].F32, 0, p.image)
		b.multiply(worker, false, true, a.q, a.k, c, dfolded, folded, 0, a.slopes)
		b.multiply(worker, false, true, a.q, a.k, c, dcontexts, rows, 1, a.slopes)
		for r := range a.q {
			a.toLogits(r)
		}
		a.toProducts(a.slopes, a.k)
	}
}

// addToSides adds the gradients of images of the block, and behind them of its texts.
func (b *vectorsBlock) addToSides(worker, lo, hi int) {
	images, texts := b.toImage-b.fromImage, b.toText-b.fromText
	for k := lo; k < hi; k++ {
		if k < images {
			for j := range texts {
				b.addToImage(worker, k*texts+j)
			}
			continue
		}
		for i := range images {
			b.addToText(worker, i*texts+k-images)
		}
	}
}

func (b *vectorsBlock) addToImage(worker, i int) {
	p, c := b.pair(i), b.channels
	if p.empty {
		return
	}
	whole := b.gradient(vectorsImages)[p.image*c:][:c]
	vector.Add(whole, whole, b.differences[wholePart][i*c:][:c])
	a := b.attendingOf(p)
	add := func(operand int, weights, rows []float32) {
		to, _ := b.rowsOf(b.gradient(operand), 0, p.image)
		b.multiply(worker, true, false, a.k, c, a.q, weights, rows, 1, to)
	}
	add(b.attention, a.slopes, b.wordsOf(p))
	add(b.similarity, a.weights, b.differences[wordPart][p.word*c:])
	add(0, a.weights, b.squares[wordPart][p.word*c:])
}

func (b *vectorsBlock) addToText(worker, i int) {
	p, c := b.pair(i), b.channels
	if p.empty {
		return
	}
	whole := b.gradient(vectorsTexts)[p.text*c:][:c]
	vector.Sub(whole, whole, b.differences[wholePart][i*c:][:c])
	a := b.attendingOf(p)
	to, _ := b.rowsOf(b.gradient(1), 1, p.text)
	rows, _ := b.rowsOf(b.c.In[b.attention].F32, 0, p.image)
	b.multiply(worker, false, false, a.q, c, a.k, a.slopes, rows, 1, to)
	for r := range p.words {
		vector.Axpy(to[r*c:][:c], -(b.contexts[p.word+r] + vectorsEps), b.differences[wordPart][(p.word+r)*c:][:c])
	}
}
