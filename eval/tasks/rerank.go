package tasks

import "github.com/geoalign/geoalign/eval"

// reranker scores candidate lists of a fold with the matching head.
type reranker struct {
	*gallery
	fold eval.Fold
}

var _ eval.PairScorer = (*reranker)(nil)

// ScoreTexts scores texts for one image, whose keys are projected once.
func (g *reranker) ScoreTexts(image int, texts []int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	k := len(texts)
	g.room(k)
	for i, j := range texts {
		g.putText(i, j)
		g.index[i] = 0
	}
	size := g.r.Image.Len() * g.r.Image.Width()
	if err := g.match(g.imageStates[(g.fold.First+image)*size:][:size], k, 1, dst); err != nil {
		return err
	}
	g.scored[0]++
	g.r.progress("re-ranking texts", g.scored[0], g.r.Images.Len())
	return nil
}

// ScoreImages scores images for one text.
func (g *reranker) ScoreImages(text int, images []int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	k := len(images)
	g.room(k)
	size := g.r.Image.Len() * g.r.Image.Width()
	for i, j := range images {
		g.putText(i, text)
		g.index[i] = int32(i)
		copy(g.candidates[i*size:][:size], g.imageStates[(g.fold.First+j)*size:])
	}
	if err := g.match(g.candidates[:k*size], k, k, dst); err != nil {
		return err
	}
	g.scored[1]++
	g.r.progress("re-ranking images", g.scored[1], g.r.Texts.Len())
	return nil
}

// match scores the k pairs in the gallery's room against the states of n images.
func (g *reranker) match(images []float32, k, n int, dst []float32) error {
	t := g.r.Text
	scores, err := g.r.Matcher.Match(g.ctx, g.states[:k*t.Len()*t.Width()], g.pairLengths[:k], g.index[:k], images, k, n)
	copy(dst, scores)
	return err
}

// putText makes a text of the fold that of pair row.
func (g *reranker) putText(row, text int) {
	text = g.fold.Texts[text]
	size := g.r.Text.Len() * g.r.Text.Width()
	copy(g.states[row*size:][:size], g.textStates[text*size:])
	g.pairLengths[row] = g.lengths[text]
}

// room makes the scratch hold k pairs.
func (g *gallery) room(k int) {
	r := g.r
	if len(g.index) >= k {
		return
	}
	g.states = make([]float32, k*r.Text.Len()*r.Text.Width())
	g.candidates = make([]float32, k*r.Image.Len()*r.Image.Width())
	g.pairLengths, g.index = make([]int32, k), make([]int32, k)
}
