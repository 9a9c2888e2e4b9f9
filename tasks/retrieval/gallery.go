package retrieval

import (
	"context"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// gallery is an encoded split.
type gallery struct {
	r                       *Retrieval
	ctx                     context.Context
	members                 mean
	imageStates, textStates []float32 // (N*T, D), (M*L, E), with re-ranking
	lengths                 []int32
	scored                  [2]int // queries re-ranked so far, images and texts

	// Room for the candidates of one query.
	states, candidates []float32 // (k*L, E), (k*T, D)
	pairLengths, index []int32
}

// rank returns the ranks of a fold by the pair score and, with re-ranking, by the match head.
func (g *gallery) rank(f eval.Fold) (first, second *eval.Ranks, err error) {
	chunk, source := g.source(f)
	if g.r.RerankTop > 0 {
		return g.rerank(f, chunk, source)
	}
	first, err = eval.Rank(f.Corr, chunk, source)
	return first, nil, err
}

// leading returns the metrics by the leading channels that are asked for.
func (g *gallery) leading(folds []eval.Fold, metrics func(*eval.Ranks) eval.Metrics) (list []Leading, err error) {
	f, ok := g.members[0].(*features)
	if !ok || len(g.members) > 1 {
		return nil, nil
	}
	for _, dim := range g.r.Dims {
		part, err := f.leading(dim)
		if err != nil {
			return nil, err
		}
		of := &gallery{r: g.r, ctx: g.ctx, members: mean{part}}
		var all []eval.Metrics
		for _, fold := range folds {
			chunk, source := of.source(fold)
			ranks, err := eval.Rank(fold.Corr, chunk, source)
			if err != nil {
				return nil, err
			}
			all = append(all, metrics(ranks))
		}
		list = append(list, Leading{dim, eval.Mean(all)})
	}
	return list, nil
}

// precision returns the precision of a fold by the pair score.
func (g *gallery) precision(f eval.Fold) (eval.Precision, error) {
	chunk, source := g.source(f)
	return eval.MeasurePrecision(f.Corr, chunk, source)
}

// source are the pair scores of a fold, of chunk images at a time.
func (g *gallery) source(f eval.Fold) (chunk int, source eval.Source) {
	chunk = min(g.r.BatchSize, f.Images)
	if f.Images == g.r.Images.Len() {
		return chunk, g.scores
	}
	return chunk, f.Source(g.scores, g.r.Texts.Len())
}

// scores is the eval.Source of the gallery: rows of images against all texts.
func (g *gallery) scores(row, n int, dst []float32) error { return g.members.rows(g.ctx, row, n, dst) }

// encode runs the towers of all members over the split.
func (g *gallery) encode(members []Member) error {
	r := g.r
	e := r.Encoding
	e.States = r.RerankTop > 0
	var seen func(image bool, x tasks.Encoded)
	if r.RerankTop > 0 {
		g.lengths = make([]int32, 0, r.Texts.Len())
		g.textStates = make([]float32, 0, r.Texts.Len()*r.Text.Len()*r.Text.Width())
		g.imageStates = make([]float32, 0, r.Images.Len()*r.Image.Len()*r.Image.Width())
		seen = g.keep
	}
	for _, m := range members {
		s, err := newScored(m, r.BatchSize, r.Progress)
		if err != nil {
			return err
		}
		if err := s.encode(g.ctx, e, seen); err != nil {
			return err
		}
		g.members, seen = append(g.members, s), nil
	}
	return nil
}

// keep keeps the token states that re-ranking reads.
func (g *gallery) keep(image bool, x tasks.Encoded) {
	if image {
		g.imageStates = append(g.imageStates, x.States...)
		return
	}
	g.textStates, g.lengths = append(g.textStates, x.States...), append(g.lengths, x.Lengths...)
}
