package retrieval

import (
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/eval"
)

// rerank ranks a fold by both scores. Processes share the queries that are scored again.
func (g *gallery) rerank(f eval.Fold, chunk int, source eval.Source) (first, second *eval.Ranks, err error) {
	group := g.r.Group
	if group == nil {
		group = parallel.Single{}
	}
	if group.Size() == 1 {
		return eval.RankAndRerank(f.Corr, chunk, g.r.RerankTop, source, &reranker{g, f})
	}
	first, cand, err := eval.RankAndKeep(f.Corr, chunk, g.r.RerankTop, source)
	if err == nil {
		second, err = eval.Rerank(f.Corr, first, cand.Share(group.Rank(), group.Size()), &reranker{g, f})
	}
	if err := parallel.Agree(group, err); err != nil {
		return nil, nil, err
	}
	for _, ranks := range [][]int{second.I2T, second.T2I} {
		if err := gatherShares(group, ranks); err != nil {
			return nil, nil, err
		}
	}
	for _, ties := range [][]eval.Tie{second.I2TTies, second.T2ITies} {
		if err := gatherTies(group, ties); err != nil {
			return nil, nil, err
		}
	}
	return first, second, nil
}

// gatherTies is gatherShares of ties.
func gatherTies(g parallel.Group, ties []eval.Tie) error {
	wrong, right := make([]int, len(ties)), make([]int, len(ties))
	for q, t := range ties {
		wrong[q], right[q] = t.Wrong, t.Right
	}
	for _, x := range [][]int{wrong, right} {
		if err := gatherShares(g, x); err != nil {
			return err
		}
	}
	for q := range ties {
		ties[q] = eval.Tie{Wrong: wrong[q], Right: right[q]}
	}
	return nil
}

// gatherShares completes numbers of which each process knows its share (eval.ShareOf).
func gatherShares(g parallel.Group, all []int) error {
	size, _ := eval.ShareOf(len(all), 1, g.Size()) // of a share, the last may be shorter
	own := make([]int32, max(1, size))
	lo, hi := eval.ShareOf(len(all), g.Rank(), g.Size())
	for i, v := range all[lo:hi] {
		own[i] = int32(v)
	}
	got, err := g.GatherInts(nil, own)
	if err != nil {
		return err
	}
	for i := range all {
		all[i] = int(got[i])
	}
	return nil
}

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
	g.reranked("re-ranking texts", g.scored[0], g.r.Images.Len())
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
	g.reranked("re-ranking images", g.scored[1], g.r.Texts.Len())
	return nil
}

// reranked tells how many queries are done, of all processes as far as this one knows.
func (g *gallery) reranked(phase string, own, total int) {
	ranks := g.r.Ranks()
	g.r.progress(phase, min(total, own*ranks), total)
}

// match scores the k pairs in the gallery's room against the states of n images. dst holds their pair scores.
func (g *reranker) match(images []float32, k, n int, dst []float32) error {
	t := g.r.Text
	logits, err := g.r.Matcher.Match(g.ctx, g.states[:k*t.Len()*t.Width()], g.pairLengths[:k], g.index[:k], images, k,
		n)
	if err != nil {
		return err
	}
	for i := range dst {
		no, yes := logits[2*i], logits[2*i+1]
		if g.r.RerankTemperature > 0 {
			dst[i] = yes - no + dst[i]/float32(g.r.RerankTemperature)
		} else {
			dst[i] = yes
		}
	}
	return nil
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
