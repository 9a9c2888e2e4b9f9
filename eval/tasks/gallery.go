package tasks

import (
	"context"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// gallery is an encoded split.
type gallery struct {
	r                       *Retrieval
	ctx                     context.Context
	score                   scoring.Score
	images, texts           []float32 // features (n, C)
	imageStates, textStates []float32 // (N*T, D), (M*L, E), with re-ranking
	lengths                 []int32
	scored                  [2]int // queries re-ranked so far, images and texts

	// Room for the candidates of one query.
	states, candidates []float32 // (k*L, E), (k*T, D)
	pairLengths, index []int32
}

// rank returns the ranks of a fold by the model's pair score and, with re-ranking, by the match head.
func (g *gallery) rank(f eval.Fold) (first, second *eval.Ranks, err error) {
	chunk := min(g.r.BatchSize, f.Images)
	source := f.Source(g.scores, g.r.Set.NumTexts())
	if f.Images == g.r.Set.NumImages() {
		source = g.scores
	}
	if g.r.RerankTop > 0 {
		return eval.RankAndRerank(f.Corr, chunk, g.r.RerankTop, source, &reranker{g, f})
	}
	first, err = eval.Rank(f.Corr, chunk, source)
	return first, nil, err
}

// scores is the eval.Source of the gallery: rows of images against all texts.
func (g *gallery) scores(row, n int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	c := g.r.Model.Dim()
	return g.score.Rows(g.r.Engine, g.images[row*c:(row+n)*c], n, g.texts, len(g.texts)/c, dst)
}

// encode runs both towers over the split.
func (g *gallery) encode() error {
	r, m := g.r, g.r.Model
	e := Encoding{BatchSize: r.BatchSize, Workers: r.Workers, Progress: r.Progress}
	texts, images := r.Set.NumTexts(), r.Set.NumImages()
	g.texts, g.images = make([]float32, 0, texts*m.Dim()), make([]float32, 0, images*m.Dim())
	g.lengths = make([]int32, 0, texts)
	rerank := r.RerankTop > 0
	if rerank {
		g.textStates = make([]float32, 0, texts*m.TextTokens()*m.TextWidth())
		g.imageStates = make([]float32, 0, images*m.ImageTokens()*m.ImageWidth())
	}
	err := e.EncodeTexts(g.ctx, m, r.Tokenizer, r.Set, func(_ int, lengths []int32, states, features []float32) {
		g.texts, g.lengths = append(g.texts, features...), append(g.lengths, lengths...)
		if rerank {
			g.textStates = append(g.textStates, states...)
		}
	})
	if err != nil {
		return err
	}
	return e.EncodeImages(g.ctx, m, r.Set, func(_ int, states, features []float32) {
		g.images = append(g.images, features...)
		if rerank {
			g.imageStates = append(g.imageStates, states...)
		}
	})
}

func (r *Retrieval) progress(phase string, done, total int) {
	if r.Progress != nil {
		r.Progress(phase, done, total)
	}
}
