package interaction

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// wordPatchRows are the tokens of a side in a block: few enough that the matrices of a block stay in a cache.
const wordPatchRows = 256

// wordPatchBlock is a block of pairs. Its matrices have a row for each word and a column for each
// patch of the block.
type wordPatchBlock struct {
	*crossBlock
	how                    *wordPatch
	overPatches, overWords []float32 // attn and attn'
	text, image            summary   // S' of each patch and P' of each word
	patchNorms             []float32 // |P_j|
	textGram               []float32 // G of each text
	threads                []wordPatchThread

	dtextGram   []float32
	dweights    []float32 // of the weights of one summary and then of the other
	dpatchNorms []float32 // gradient of |P_j|^2 from each text: (texts, columns)
}

// summary is how the tokens of a side are summed up for each token of the other.
type summary struct {
	weights []float32
	mixed   []float32 // G times the weights; in the backward pass then the gradient of that
}

// wordPatchThread is a thread's memory for a text with the images of a block.
type wordPatchThread struct {
	work, low, sum []float32 // (columns)
	rows, drows    []float32 // (words)
	patches        cosines   // of each patch with its S': (columns)
	words          cosines   // of each word with its P' of each image: (images, words)
}

// cosines are those of tokens with their summaries, and then their gradients.
type cosines struct {
	products  []float32 // x.s; the gradient of it
	lengths   []float32 // |s|^2; the gradient of it
	values    []float32
	exponents []float32 // cosine/tau; the gradient of the cosine
}

func (c cosines) of(from, n int) cosines {
	return cosines{c.products[from:][:n], c.lengths[from:][:n], c.values[from:][:n], c.exponents[from:][:n]}
}

// floats is the memory of a block.
func (x *wordPatch) floats(channels, threads int, backward bool) int {
	b := wordPatchBlock{how: x, crossBlock: &crossBlock{cross: &x.cross, channels: channels, backward: backward}}
	var m carve
	b.crossBlock.lay(&m, threads)
	b.lay(&m, threads)
	return m.used
}

// lay gives a block its memory behind that of cross attention.
func (b *wordPatchBlock) lay(m *carve, threads int) {
	rows, columns, length := b.most[textSide], b.most[imageSide], b.sides[textSide].len
	matrix := func() []float32 { return m.take(rows * columns) }
	b.overPatches, b.overWords = matrix(), matrix()
	b.text, b.image = summary{matrix(), matrix()}, summary{matrix(), matrix()}
	b.patchNorms, b.textGram = m.take(columns), m.take(rows*length)
	if b.backward {
		b.dweights, b.dtextGram, b.dpatchNorms = matrix(), m.take(rows*length), m.take(b.sequences[textSide]*columns)
	}
	cosinesOf := func(n int) cosines { return cosines{m.take(n), m.take(n), m.take(n), m.take(n)} }
	for range threads {
		b.threads = append(b.threads, wordPatchThread{
			work: m.take(columns), low: m.take(columns), sum: m.take(columns), rows: m.take(length),
			drows:   m.take(length),
			patches: cosinesOf(columns), words: cosinesOf(length * b.sequences[imageSide]),
		})
	}
}

// columns is the width of the matrices.
func (b *wordPatchBlock) columns() int { return b.span[imageSide].rows() }

// images is how many there are in the block.
func (b *wordPatchBlock) images() int { return b.span[imageSide].to - b.span[imageSide].from }

// wordsOf returns the rows of text i of the block.
func (b *wordPatchBlock) wordsOf(i int) (at, n int) {
	return b.span[textSide].of(b.span[textSide].from + i)
}

// patchesOf returns the columns of image i of the block.
func (b *wordPatchBlock) patchesOf(i int) (at, n int) {
	return b.span[imageSide].of(b.span[imageSide].from + i)
}

// strip returns the rows of text i of the block in a matrix.
func (b *wordPatchBlock) strip(of []float32, i int) []float32 {
	at, n := b.wordsOf(i)
	return of[at*b.columns():][:n*b.columns()]
}

// prepare makes G and the lengths of the patches of images.
func (b *wordPatchBlock) prepare(worker, lo, hi int) {
	b.grams(worker, lo, hi)
	for i := lo; i < hi; i++ {
		at, n := b.patchesOf(i)
		diagonalRoots(b.patchNorms[at:][:n], b.gramOf(b.gram, i))
	}
}

// diagonalRoots sets the square roots of the diagonal of a matrix.
func diagonalRoots(to, of []float32) {
	for j := range to {
		to[j] = float32(math.Sqrt(float64(of[j*len(to)+j])))
	}
}

// attend makes the attention of texts and images to each other, and the weights of the summaries.
func (b *wordPatchBlock) attend(worker, lo, hi int) {
	t, columns := &b.threads[worker], b.columns()
	for i := lo; i < hi; i++ {
		_, n := b.wordsOf(i)
		if n == 0 || columns == 0 {
			continue
		}
		b.makeGram(worker, textSide, i, b.textGram, b.dtextGram)
		products, text := b.strip(b.products[attentionSite], i), b.strip(b.text.weights, i)
		overPatches, overWords := b.strip(b.overPatches, i), b.strip(b.overWords, i)
		b.softmaxPatches(t, overPatches, products, b.how.Scale)
		t.softmaxWords(overWords, products, columns, b.how.Scale)
		t.softmaxWords(text, overPatches, columns, 1/b.how.Context)
		b.softmaxPatches(t, b.strip(b.image.weights, i), overWords, 1/b.how.Context)
		b.c.Engine.GemmSerial(false, false, n, columns, n, 1, b.gramIn(textSide, b.textGram, i), n, text, columns, 0,
			b.strip(b.text.mixed, i), columns)
	}
}

// mix makes the products of the patches of images with their summaries.
func (b *wordPatchBlock) mix(_, lo, hi int) {
	rows, columns := b.span[textSide].rows(), b.columns()
	for i := lo; i < hi; i++ {
		if at, n := b.patchesOf(i); n > 0 && rows > 0 {
			b.c.Engine.GemmSerial(false, false, rows, n, n, 1, b.image.weights[at:], columns, b.gramOf(b.gram, i), n,
				0, b.image.mixed[at:], columns)
		}
	}
}

// softmaxPatches sets the softmax of scale x over the patches of each image.
func (b *wordPatchBlock) softmaxPatches(t *wordPatchThread, to, x []float32, scale float32) {
	columns := b.columns()
	vector.Scale(to, scale, x)
	for i := range b.images() {
		if at, n := b.patchesOf(i); n > 0 {
			vector.SoftmaxRows(to[at:], columns, n, nil, 0, 1, t.rows[:len(to)/columns])
		}
	}
}

// softmaxWords sets the softmax of scale x over the rows.
func (t *wordPatchThread) softmaxWords(to, x []float32, columns int, scale float32) {
	low, sum := t.low[:columns], t.sum[:columns]
	vector.Fill(low, float32(math.Inf(1)))
	vector.Scale(to, -scale, x)
	for r := 0; r < len(to); r += columns {
		vector.MinPlus(low, to[r:][:columns], 0)
	}
	clear(sum)
	for r := 0; r < len(to); r += columns {
		row := to[r:][:columns]
		vector.Sub(row, low, row)
		vector.Exp(row, row)
		vector.Add(sum, sum, row)
	}
	for c, v := range sum {
		sum[c] = 1 / v
	}
	for r := 0; r < len(to); r += columns {
		vector.Mul(to[r:][:columns], to[r:][:columns], sum)
	}
}
