package tasks

import (
	"context"

	"github.com/geoalign/geoalign/data"
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

// encodeImages runs the image tower over the split. A short last batch is filled up
// with what the batch before left behind.
func (g *gallery) encodeImages() error {
	r := g.r
	m, n := r.Model, r.Set.NumImages()
	b := min(r.BatchSize, n)
	size, state := 3*m.ImageSize()*m.ImageSize(), m.ImageTokens()*m.ImageWidth()
	pixels := make([]float32, b*size)
	g.images = make([]float32, 0, n*m.Dim())
	if r.RerankTop > 0 {
		g.imageStates = make([]float32, 0, n*state)
	}
	for first := 0; first < n; first += b {
		k := min(b, n-first)
		if err := data.LoadImages(g.ctx, r.Set, first, k, pixels[:k*size], max(1, r.Workers)); err != nil {
			return err
		}
		states, features, err := m.EncodeImages(pixels, b)
		if err != nil {
			return err
		}
		g.images = append(g.images, features[:k*m.Dim()]...)
		if r.RerankTop > 0 {
			g.imageStates = append(g.imageStates, states[:k*state]...)
		}
		r.progress("encoding images", first+k, n)
	}
	return nil
}

// encodeTexts runs the text tower over the split.
func (g *gallery) encodeTexts() error {
	r := g.r
	m, n := r.Model, r.Set.NumTexts()
	b, l := min(r.BatchSize, n), m.TextTokens()
	state := l * m.TextWidth()
	texts := make([]string, b)
	ids, lengths := make([]int32, b*l), make([]int32, b)
	g.texts = make([]float32, 0, n*m.Dim())
	g.lengths = make([]int32, 0, n)
	if r.RerankTop > 0 {
		g.textStates = make([]float32, 0, n*state)
	}
	for first := 0; first < n; first += b {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		k := min(b, n-first)
		for i := range texts { // a short last batch repeats its last text
			texts[i] = r.Set.Text(min(first+i, n-1))
		}
		if err := data.TokenBatch(r.Tokenizer, texts, l, ids, lengths); err != nil {
			return err
		}
		states, features, err := m.EncodeTexts(ids, lengths, b)
		if err != nil {
			return err
		}
		g.texts = append(g.texts, features[:k*m.Dim()]...)
		g.lengths = append(g.lengths, lengths[:k]...)
		if r.RerankTop > 0 {
			g.textStates = append(g.textStates, states[:k*state]...)
		}
		r.progress("encoding texts", first+k, n)
	}
	return nil
}

func (r *Retrieval) progress(phase string, done, total int) {
	if r.Progress != nil {
		r.Progress(phase, done, total)
	}
}
