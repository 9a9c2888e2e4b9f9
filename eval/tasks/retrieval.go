// Package tasks evaluates models on data: it encodes a split, scores it and hands
// the scores to the metrics of package eval.
package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Model is what retrieval needs of a model; *model.ALBEF is one.
type Model interface {
	EncodeImages(images []float32, n int) (states, features []float32, err error)
	EncodeTexts(ids, lengths []int32, n int) (states, features []float32, err error)
	Match(states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error)
	HasMatching() bool
	ImageSize() int
	ImageTokens() int
	ImageWidth() int
	TextTokens() int
	TextWidth() int
	Dim() int
}

// Retrieval evaluates image-text retrieval in both directions: cosine of the
// projected features over the whole gallery (1.10.4), then, with RerankTop, the
// matching head on the best candidates of every query (1.10.5).
//
// With re-ranking the token states of the whole split are kept in memory:
// 4 bytes x (images*T*D + texts*L*D).
type Retrieval struct {
	Model     Model
	Tokenizer data.Tokenizer
	Engine    *kernel.Engine
	Set       data.EvalSet
	BatchSize int
	RerankTop int // candidates re-scored per query; 0: none
	Folds     int // more than 1: the mean over that many folds of the gallery
	Workers   int // goroutines that decode images
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// Scores is what an evaluation found.
type Scores struct {
	Cosine eval.Metrics
	Rerank *eval.Metrics // nil without re-ranking
	Chance eval.Metrics
	Images int
	Texts  int
}

// Final returns the metrics to report: the re-ranked ones if there are any.
func (s Scores) Final() eval.Metrics {
	if s.Rerank != nil {
		return *s.Rerank
	}
	return s.Cosine
}

// Table formats the scores for people.
func (s Scores) Table() string {
	results := []eval.Result{{Name: "cosine", Metrics: s.Cosine}}
	if s.Rerank != nil {
		results = append(results, eval.Result{Name: "re-ranked", Metrics: *s.Rerank})
	}
	return eval.Table(results, s.Chance)
}

// gallery is an encoded split.
type gallery struct {
	r                       *Retrieval
	images, texts           []float32 // features (n, C)
	imageStates, textStates []float32 // (n*T, D), (n*L, D), with re-ranking
	lengths                 []int32
	states                  []float32 // (k*L, D) scratch
	candidates              []float32 // (k*T, D) scratch
	pairLengths, index      []int32
}

// Run encodes, scores and ranks.
func (r Retrieval) Run(ctx context.Context) (Scores, error) {
	var s Scores
	if r.RerankTop > 0 && !r.Model.HasMatching() {
		return s, fmt.Errorf("tasks: eval.rerank_top = %d needs a match head, and this model was trained without one: set eval.rerank_top = 0", r.RerankTop)
	}
	if r.RerankTop > 0 && r.Folds > 1 {
		return s, fmt.Errorf("tasks: re-ranking and folds do not go together: set eval.rerank_top = 0 or eval.folds = 1")
	}
	set := r.Set
	imageIDs, textIDs := make([]int, set.NumImages()), make([]int, set.NumTexts())
	for i := range imageIDs {
		imageIDs[i] = i
	}
	for j := range textIDs {
		textIDs[j] = set.TextImage(j)
	}
	corr, err := eval.NewCorrespondence(imageIDs, textIDs)
	if err != nil {
		return s, err
	}
	s.Images, s.Texts, s.Chance = len(imageIDs), len(textIDs), corr.Chance()
	g := &gallery{r: &r}
	if err := g.encodeTexts(ctx); err != nil {
		return s, err
	}
	if err := g.encodeImages(ctx); err != nil {
		return s, err
	}
	chunk := max(1, min(r.BatchSize, s.Images))
	switch {
	case r.Folds > 1:
		s.Cosine, _, err = eval.FoldMetrics(corr, r.Folds, chunk, g.cosine)
		return s, err
	case r.RerankTop > 0:
		first, second, err := eval.RankAndRerank(corr, chunk, r.RerankTop, g.cosine, &reranker{gallery: g, ctx: ctx})
		if err != nil {
			return s, err
		}
		m := second.Metrics()
		s.Cosine, s.Rerank = first.Metrics(), &m
		return s, nil
	}
	ranks, err := eval.Rank(corr, chunk, g.cosine)
	if err != nil {
		return s, err
	}
	s.Cosine = ranks.Metrics()
	return s, nil
}

// cosine is the eval.Source of the gallery: rows of images against all texts.
func (g *gallery) cosine(row, n int, dst []float32) error {
	c := g.r.Model.Dim()
	texts := len(g.texts) / c
	g.r.Engine.Gemm(false, true, n, texts, c, 1, g.images[row*c:], c, g.texts, c, 0, dst, texts)
	return nil
}

func (g *gallery) encodeImages(ctx context.Context) error {
	r := g.r
	m, n, b := r.Model, r.Set.NumImages(), r.BatchSize
	size := 3 * m.ImageSize() * m.ImageSize()
	pixels := make([]float32, b*size)
	g.images = make([]float32, 0, n*m.Dim())
	for first := 0; first < n; first += b {
		k := min(b, n-first)
		if err := data.LoadImages(ctx, r.Set, first, k, pixels[:k*size], max(1, r.Workers)); err != nil {
			return err
		}
		states, features, err := m.EncodeImages(pixels, b)
		if err != nil {
			return err
		}
		g.images = append(g.images, features[:k*m.Dim()]...)
		if r.RerankTop > 0 {
			g.imageStates = append(g.imageStates, states[:k*m.ImageTokens()*m.ImageWidth()]...)
		}
		r.progress("encoding images", first+k, n)
	}
	return nil
}

func (g *gallery) encodeTexts(ctx context.Context) error {
	r := g.r
	m, n, b, l := r.Model, r.Set.NumTexts(), r.BatchSize, r.Model.TextTokens()
	texts := make([]string, b)
	ids, lengths := make([]int32, b*l), make([]int32, b)
	g.texts = make([]float32, 0, n*m.Dim())
	for first := 0; first < n; first += b {
		if err := ctx.Err(); err != nil {
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
			g.textStates = append(g.textStates, states[:k*l*m.TextWidth()]...)
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

// reranker scores candidate lists with the matching head.
type reranker struct {
	*gallery
	ctx context.Context
}

var _ eval.PairScorer = (*reranker)(nil)

// ScoreTexts scores texts for one image, whose keys are projected once.
func (g *reranker) ScoreTexts(image int, texts []int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	m, k := g.r.Model, len(texts)
	g.room(k)
	for i, j := range texts {
		g.putText(i, j)
		g.index[i] = 0
	}
	size := m.ImageTokens() * m.ImageWidth()
	scores, err := m.Match(g.states[:k*m.TextTokens()*m.TextWidth()], g.pairLengths[:k], g.index[:k], g.imageStates[image*size:][:size], k, 1)
	if err != nil {
		return err
	}
	copy(dst, scores)
	g.r.progress("re-ranking texts", image+1, g.r.Set.NumImages())
	return nil
}

// ScoreImages scores images for one text.
func (g *reranker) ScoreImages(text int, images []int, dst []float32) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	m, k := g.r.Model, len(images)
	g.room(k)
	size := m.ImageTokens() * m.ImageWidth()
	for i, j := range images {
		g.putText(i, text)
		g.index[i] = int32(i)
		copy(g.candidates[i*size:][:size], g.imageStates[j*size:])
	}
	scores, err := m.Match(g.states[:k*m.TextTokens()*m.TextWidth()], g.pairLengths[:k], g.index[:k], g.candidates[:k*size], k, k)
	if err != nil {
		return err
	}
	copy(dst, scores)
	g.r.progress("re-ranking images", text+1, g.r.Set.NumTexts())
	return nil
}

func (g *gallery) putText(row, text int) {
	size := g.r.Model.TextTokens() * g.r.Model.TextWidth()
	copy(g.states[row*size:][:size], g.textStates[text*size:])
	g.pairLengths[row] = g.lengths[text]
}

// room makes the scratch hold k pairs.
func (g *gallery) room(k int) {
	m := g.r.Model
	if len(g.index) >= k {
		return
	}
	g.states = make([]float32, k*m.TextTokens()*m.TextWidth())
	g.candidates = make([]float32, k*m.ImageTokens()*m.ImageWidth())
	g.pairLengths, g.index = make([]int32, k), make([]int32, k)
}
