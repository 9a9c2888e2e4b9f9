package interaction

import (
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// slopes makes the gradients of the products of text i with the images of the block from those of their
// cosines, and those of the text's G.
func (b *wordPatchBlock) slopes(worker, i int) {
	t, columns := &b.threads[worker], b.columns()
	d, dweights := b.strip(b.dproduct[attentionSite], i), b.strip(b.dweights, i)
	text := b.strip(b.text.weights, i)

	b.patchSlopes(t, d, dweights, i)
	t.softmaxWordsSlopes(dweights, text, columns)
	b.softmaxPatchesSlopes(dweights, b.strip(b.overPatches, i))
	vector.Axpy(d, b.how.Scale/b.how.Context, dweights)

	b.wordSlopes(t, d, dweights, i)
	b.softmaxPatchesSlopes(dweights, b.strip(b.image.weights, i))
	t.softmaxWordsSlopes(dweights, b.strip(b.overWords, i), columns)
	vector.Axpy(d, b.how.Scale/b.how.Context, dweights)

	_, n := b.wordsOf(i)
	b.c.Engine.GemmSerial(false, true, n, n, columns, 1, b.strip(b.text.mixed, i), columns, text, columns, 1,
		b.gramIn(textSide, b.dtextGram, i), n)
	b.addGram(worker, textSide, i, b.dtextGram)
}

// patchSlopes sets the gradients of the products, and in dweights of the weights, of the cosines of patches with
// their summaries of text i.
func (b *wordPatchBlock) patchSlopes(t *wordPatchThread, d, dweights []float32, i int) {
	columns := b.columns()
	patches := t.patches.of(0, columns)
	patches.slopes(b.patchNorms, b.dpatchNorms[i*b.most[imageSide]:])
	products, weights, mixed := b.strip(b.products[attentionSite], i), b.strip(b.text.weights, i),
		b.strip(b.text.mixed, i)
	work, twice := t.work[:columns], t.low[:columns]
	vector.Scale(twice, 2, patches.lengths)
	for r := 0; r < len(d); r += columns {
		dw, w, m := dweights[r:][:columns], weights[r:][:columns], mixed[r:][:columns]
		vector.Mul(dw, patches.products, products[r:][:columns])
		vector.Mul(work, twice, m)
		vector.Add(dw, dw, work)
		vector.Mul(d[r:][:columns], patches.products, w)
		vector.Mul(m, patches.lengths, w)
	}
}

// wordSlopes adds the gradients of the products, and sets in dweights those of the weights, of the cosines of
// the words of text i with their summaries of images.
func (b *wordPatchBlock) wordSlopes(t *wordPatchThread, d, dweights []float32, i int) {
	columns := b.columns()
	products, weights, mixed := b.strip(b.products[attentionSite], i), b.strip(b.image.weights, i),
		b.strip(b.image.mixed, i)
	_, n := b.wordsOf(i)
	gram, norms, dnorms := b.gramIn(textSide, b.dtextGram, i), t.rows[:n], t.drows[:n]
	diagonalRoots(norms, b.gramIn(textSide, b.textGram, i))
	for image := range b.images() {
		at, k := b.patchesOf(image)
		if k == 0 {
			continue
		}
		words := t.words.of(image*n, n)
		words.slopes(norms, dnorms)
		for r := range n {
			gram[r*n+r] += dnorms[r]
			from := r*columns + at
			w, m := weights[from:][:k], mixed[from:][:k]
			vector.Axpby(dweights[from:][:k], words.products[r], products[from:][:k], 2*words.lengths[r], m)
			vector.Axpy(d[from:][:k], words.products[r], w)
			vector.Scale(m, words.lengths[r], w)
		}
	}
}

// softmaxPatchesSlopes turns gradients of softmaxes over the patches of each image into those of what they are of.
func (b *wordPatchBlock) softmaxPatchesSlopes(d, weights []float32) {
	columns := b.columns()
	for i := range b.images() {
		if at, n := b.patchesOf(i); n > 0 {
			vector.SoftmaxGradRows(d[at:], weights[at:], weights[at:], columns, len(d)/columns, n)
		}
	}
}

// softmaxWordsSlopes does so for softmaxes over the rows.
func (t *wordPatchThread) softmaxWordsSlopes(d, weights []float32, columns int) {
	work, sum := t.work[:columns], t.sum[:columns]
	clear(sum)
	for r := 0; r < len(d); r += columns {
		vector.Mul(work, d[r:][:columns], weights[r:][:columns])
		vector.Add(sum, sum, work)
	}
	for r := 0; r < len(d); r += columns {
		row := d[r:][:columns]
		vector.Sub(row, row, sum)
		vector.Mul(row, row, weights[r:][:columns])
	}
}

// mixSlopes adds the gradients of G of images, and of the lengths of their patches.
func (b *wordPatchBlock) mixSlopes(_, lo, hi int) {
	rows, columns := b.span[textSide].rows(), b.columns()
	for i := lo; i < hi; i++ {
		at, n := b.patchesOf(i)
		if n == 0 || rows == 0 {
			continue
		}
		gram := b.gramOf(b.dgram, i)
		b.c.Engine.GemmSerial(true, false, n, n, rows, 1, b.image.mixed[at:], columns, b.image.weights[at:], columns,
			1, gram, n)
		for text := range b.span[textSide].to - b.span[textSide].from {
			if _, words := b.wordsOf(text); words == 0 {
				continue
			}
			for j, d := range b.dpatchNorms[text*b.most[imageSide]+at:][:n] {
				gram[j*n+j] += d
			}
		}
	}
}

// addProducts adds the gradients of rows through the products of the block.
func (b *wordPatchBlock) addProducts() {
	rows, columns := b.span[textSide].rows(), b.columns()
	if rows == 0 || columns == 0 {
		return
	}
	d := gemm.Matrix{F32: b.dproduct[attentionSite], LD: columns}
	b.addProduct(false, rows, columns, d, b.packed[imageSide], b.dpacked[textSide])
	b.addProduct(true, columns, rows, d, b.packed[textSide], b.dpacked[imageSide])
}
