package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var wordPatchSource = cuda.NewSource(files, "wordpatch", "cross.cu", "wordpatch.cu")

// wordPatchWork is a step on the CUDA device. The weights of the summaries of images lie where cross attention has its
// own, those of the summaries of texts besides.
type wordPatchWork struct {
	*pairsWork
	overPatches, overWords cuda.Pointer
	text, textMixed        cuda.Pointer
	textGram, dtextGram    cuda.Pointer // of each text of a block
	dtextGramRead          cuda.Matrix  // as products read it, where that is rounded
	dpatchNorm             cuda.Pointer
}

// prepare makes the step.
func (x *WordPatch) prepare(c *exec.DeviceCall, backward bool) cuda.Step {
	words, patches := x.Sides[textSide].Len, x.Sides[imageSide].Len
	cosines := 3 * (words + patches)
	if 4*(words*patches+cosines) > mostShared {
		return nil
	}
	b := &wordPatchWork{pairsWork: x.begin(c, backward)}
	rows := b.most[textSide] * words
	b.overPatches, b.overWords, b.text, b.textMixed = b.matrix(), b.matrix(), b.matrix(), b.matrix()
	b.textGram = b.floats(rows * words)
	if backward {
		b.dtextGram, b.dtextGramRead, b.dpatchNorm = b.floats(rows*words), b.rounded(rows, words),
			b.floats(b.most[textSide]*b.most[imageSide]*patches)
	}
	b.scratch()
	b.source = wordPatchSource
	attend, align, slopes, addNorms := b.kernel("attend_both"), b.kernel("align"), b.kernel("align_slopes"),
		b.kernel("add_norms")
	return b.run(func() {
		sim, text, image, textMixed, imageMixed := b.at(b.products[attentionSite]), b.at(b.text), b.at(b.weights),
			b.at(b.textMixed), b.at(b.mixed)
		b.grams(textSide, b.textGram)
		b.launch(attend, 0, []any{b.at(b.overPatches), b.at(b.overWords), text, image, sim}, []any{x.Scale,
			x.Context})
		b.mix(b.weights)
		b.mixTexts()
		grams, imageGrams := b.at(b.textGram), b.at(b.gram)
		if !backward {
			b.launch(align, cosines, []any{c.Out, sim, text, textMixed, image, imageMixed, grams, imageGrams},
				[]any{x.Temperature, x.Sum})
			return
		}
		rows, cols := b.now[textSide].count*words, b.now[imageSide].count*patches
		b.launch(slopes, words*patches+cosines,
			[]any{b.dattended(), textMixed, imageMixed, b.at(b.dnorm), b.at(b.dpatchNorm), sim,
				b.at(b.overPatches), b.at(b.overWords),
				text, image, grams, imageGrams, c.In[len(c.In)-1]},
			[]any{rows, cols, b.ldd(), x.Scale / x.Context, x.Temperature, x.Sum})
		b.unmix(b.weights)
		b.unmixTexts()
		first := b.now[imageSide].from * patches * b.channels
		addNorms.Enqueue(cuda.Grid{X: cols, Threads: 128}, cuda.MatrixOf(b.gradient(imageSide), first, 0).At,
			cuda.MatrixOf(c.In[imageSide], first, 0).At,
			b.at(b.dpatchNorm), b.now[textSide].count, cols, b.channels)
	})
}

// mixTexts makes G of each text times the weights of its summaries.
func (b *wordPatchWork) mixTexts() {
	n, cols := b.Sides[textSide].Len, b.now[imageSide].count*b.Sides[imageSide].Len
	p := cuda.Product{M: n, N: cols, K: n, Batch: b.now[textSide].count, StrideA: n * n, StrideB: n * b.ld,
		StrideC: n * b.ld}
	cuda.Multiply(b.c, p, cuda.FloatsAt(b.at(b.textGram), n), cuda.FloatsAt(b.at(b.text), b.ld),
		cuda.FloatsAt(b.at(b.textMixed), b.ld),
		nil)
}

// unmixTexts makes the gradients of G of each text of the block, and adds those of its rows through G.
func (b *wordPatchWork) unmixTexts() {
	n, cols := b.Sides[textSide].Len, b.now[imageSide].count*b.Sides[imageSide].Len
	p := cuda.Product{TransB: true, M: n, N: n, K: cols, Batch: b.now[textSide].count, StrideA: n * b.ld,
		StrideB: n * b.ld,
		StrideC: n * n}
	cuda.Multiply(b.c, p, cuda.FloatsAt(b.at(b.textMixed), b.ld), cuda.FloatsAt(b.at(b.text), b.ld),
		cuda.FloatsAt(b.at(b.dtextGram),
			n), nil)
	b.addGrams(textSide, b.dtextGram, b.dtextGramRead)
}
