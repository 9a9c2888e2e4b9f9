package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// score makes the scores of texts with the images of the block, in the backward pass their gradients
// up to those of the products and of G.
func (b *wordPatchBlock) score(worker, lo, hi int) {
	t, columns := &b.threads[worker], b.columns()
	for i := lo; i < hi; i++ {
		_, n := b.wordsOf(i)
		patches := t.patches.of(0, columns)
		if n > 0 && columns > 0 {
			b.patchCosines(t, patches, i)
		}
		norms := t.rows[:n]
		diagonalRoots(norms, b.gramIn(textSide, b.textGram, i))
		for image := range b.images() {
			at, k := b.patchesOf(image)
			to := b.at(b.span[textSide].from+i, b.span[imageSide].from+image)
			if n == 0 || k == 0 {
				if !b.backward {
					b.c.Out.F32[to] = 0
				}
				continue
			}
			words := t.words.of(image*n, n)
			b.wordCosines(words, norms, i, image)
			score := b.join(patches.of(at, k), words)
			if !b.backward {
				b.c.Out.F32[to] = score
				continue
			}
			g := b.c.In[b.operands].F32[to]
			b.cosineSlopes(patches.exponents[at:][:k], score, g)
			b.cosineSlopes(words.exponents, score, g)
		}
		if b.backward && n > 0 && columns > 0 {
			b.slopes(worker, i)
		}
	}
}

// patchCosines makes the cosines of all patches with their summaries of text i.
func (b *wordPatchBlock) patchCosines(t *wordPatchThread, patches cosines, i int) {
	columns := b.columns()
	products, weights, mixed := b.strip(b.products[attentionSite], i), b.strip(b.text.weights, i),
		b.strip(b.text.mixed, i)
	work := t.work[:columns]
	clear(patches.products)
	clear(patches.lengths)
	for r := 0; r < len(products); r += columns {
		vector.Mul(work, weights[r:][:columns], products[r:][:columns])
		vector.Add(patches.products, patches.products, work)
		vector.Mul(work, weights[r:][:columns], mixed[r:][:columns])
		vector.Add(patches.lengths, patches.lengths, work)
	}
	patches.make(b.patchNorms[:columns], b.how.Temperature)
}

// wordCosines makes the cosines of the words of text i, of so many lengths, with their summaries of an image.
func (b *wordPatchBlock) wordCosines(words cosines, norms []float32, i, image int) {
	columns := b.columns()
	products, weights, mixed := b.strip(b.products[attentionSite], i), b.strip(b.image.weights, i),
		b.strip(b.image.mixed, i)
	at, k := b.patchesOf(image)
	for r := range words.products {
		row := weights[r*columns+at:][:k]
		words.products[r] = vector.Dot(row, products[r*columns+at:][:k])
		words.lengths[r] = vector.Dot(row, mixed[r*columns+at:][:k])
	}
	words.make(norms, b.how.Temperature)
}

// make makes the cosines of tokens of so many lengths.
func (c cosines) make(norms []float32, temperature float32) {
	for j, v := range c.products {
		length := norms[j] * float32(math.Sqrt(float64(max(0, c.lengths[j]))))
		if c.values[j] = v / length; length <= crossEps {
			c.values[j] = 0
		}
	}
	vector.Scale(c.exponents, 1/temperature, c.values)
}

// join returns the score of a pair from its exponents, and lowers them by the logarithm of how many there
// are unless they are summed.
func (b *wordPatchBlock) join(patches, words cosines) float32 {
	var logs [2]float32
	for side, e := range [][]float32{patches.exponents, words.exponents} {
		if !b.how.Sum {
			less := float32(math.Log(float64(len(e))))
			for j := range e {
				e[j] -= less
			}
		}
		logs[side] = vector.LogSumExp(e)
	}
	return vector.LogSumExp(logs[:])
}

// cosineSlopes turns exponents into the gradients of the cosines of a pair, where g is that of its score.
func (b *wordPatchBlock) cosineSlopes(exponents []float32, score, g float32) {
	vector.ExpSum(exponents, exponents, score)
	vector.Scale(exponents, g/b.how.Temperature, exponents)
}

// slopes turns the gradients of cosines into those of the products and of the lengths; norms are those of the
// tokens, and their gradients, of the square, are set.
func (c cosines) slopes(norms, dnorms []float32) {
	for j, d := range c.exponents {
		length := norms[j] * float32(math.Sqrt(float64(max(0, c.lengths[j]))))
		if length <= crossEps {
			c.products[j], c.lengths[j], dnorms[j] = 0, 0, 0
			continue
		}
		d *= -c.values[j] / 2
		c.products[j], c.lengths[j], dnorms[j] = c.exponents[j]/length, d/c.lengths[j], d/(norms[j]*norms[j])
	}
}
