package tasks

import (
	"context"

	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/eval"
)

// gallery is an encoded split.
type gallery struct {
	r                       *Retrieval
	ctx                     context.Context
	images, texts           []float32 // features (n, C)
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
		return eval.RankAndRerank(f.Corr, chunk, g.r.RerankTop, source, &reranker{g, f})
	}
	first, err = eval.Rank(f.Corr, chunk, source)
	return first, nil, err
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
func (g *gallery) scores(row, n int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	c := g.r.Image.Dim()
	return g.r.Score.Rows(g.r.Engine, g.images[row*c:(row+n)*c], n, g.texts, len(g.texts)/c, dst)
}

// encode runs both towers over the split.
func (g *gallery) encode() error {
	r := g.r
	e := Encoding{BatchSize: r.BatchSize, Workers: r.Workers, Progress: r.Progress}
	texts, images := r.Texts.Len(), r.Images.Len()
	g.texts, g.images = make([]float32, 0, texts*r.Text.Dim()), make([]float32, 0, images*r.Image.Dim())
	g.lengths = make([]int32, 0, texts)
	rerank := r.RerankTop > 0
	if rerank {
		g.textStates = make([]float32, 0, texts*r.Text.Len()*r.Text.Width())
		g.imageStates = make([]float32, 0, images*r.Image.Len()*r.Image.Width())
	}
	err := e.Run(g.ctx, r.Text, r.Texts, "encoding texts", func(x Encoded) error {
		g.texts = append(g.texts, x.Features...)
		if rerank {
			g.textStates, g.lengths = append(g.textStates, x.States...), append(g.lengths, x.Batch.Ints(batch.Lengths)[:x.Rows]...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.Run(g.ctx, r.Image, r.Images, "encoding images", func(x Encoded) error {
		g.images = append(g.images, x.Features...)
		if rerank {
			g.imageStates = append(g.imageStates, x.States...)
		}
		return nil
	})
}
