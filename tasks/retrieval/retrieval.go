package retrieval

import (
	"context"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Retrieval evaluates image-text retrieval in both directions: the pair score of the
// projected features over the whole gallery, such as their cosine, then, with RerankTop, the
// matching head on the best candidates of every query.
//
// With an interaction the pair score is that of tokens, and images and texts are encoded to
// tokens. With further models it is the mean of the scores of all.
//
// With N images, M texts, C channels, T image tokens of width D and L text tokens of
// width E it keeps 4 bytes x (N+M)*C of features and min(BatchSize, N)*M of scores.
// Re-ranking keeps the token states of the whole split too, 4 bytes x (N*T*D + M*L*E):
// 1,000 images of 65 x 192 and 5,000 texts of 30 x 192 are 165 MB, the 5,000 images of
// COCO at 384 pixels with a ViT-B/16 (577 x 768) and their texts 11 GB.
type Retrieval struct {
	Member
	With []Member // models whose scores of the same split are averaged with those of Member
	tasks.Encoding
	Matcher   tasks.Matcher     // nil: it does not re-rank
	TextImage func(j int) int   // row of the image of text j
	ImageID   func(i int) int64 // images of one id are right answers for each other's texts
	RerankTop int               // candidates re-scored per query; 0: none
	// RerankTemperature re-ranks by the log-odds of the match head plus the pair score divided by it, 0 by the logit
	// of match alone, as ALBEF. Where a head has learned from wrong pairs drawn by the softmax of scores / temperature,
	// as hard negatives are, its log-odds are those against this distribution, so that the sum of both is the
	// logarithm of how likely a candidate is, up to a constant of the query (noise-contrastive estimation).
	RerankTemperature float64
	// Folds cuts the gallery into that many folds of consecutive images, ranked (and
	// re-ranked) on their own; the metrics are the means. 0 and 1: the whole gallery.
	Folds int
	// Dims are leading channels by which the pairs of Member are scored too, on their own.
	Dims []int
	// MeanTies takes the mean over all orders of candidates of equal scores, instead of the order against the
	// model.
	MeanTies bool
}

// check says what is wrong with r.
func (r *Retrieval) check() error {
	switch {
	case r.RerankTop < 0 || r.Folds < 0:
		return fmt.Errorf("tasks: eval.rerank_top and eval.folds must not be negative (got %d and %d)", r.RerankTop,
			r.Folds)
	case r.RerankTop > 0 && r.Interaction != nil:
		return fmt.Errorf("tasks: eval.rerank_top = %d needs fusion layers, and this model compares tokens: set eval.rerank_top = 0", r.RerankTop)
	case r.RerankTop > 0 && r.Matcher == nil:
		return fmt.Errorf("tasks: eval.rerank_top = %d needs a match head, and this model was trained without one: set eval.rerank_top = 0", r.RerankTop)
	}
	return nil
}

// scoreName names the score of all members.
func scoreName(members []Member) string {
	if len(members) == 1 {
		return members[0].Name()
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Name())
	}
	return "mean of " + strings.Join(names, " and ")
}

// correspondence says which texts and images of the split are right answers.
func (r *Retrieval) correspondence() (*eval.Correspondence, error) {
	imageIDs, textImage := make([]int64, r.Images.Len()), make([]int, r.Texts.Len())
	for i := range imageIDs {
		imageIDs[i] = r.ImageID(i)
	}
	for j := range textImage {
		textImage[j] = r.TextImage(j)
	}
	return eval.NewCorrespondence(imageIDs, textImage)
}

// progress tells how much of a phase is done.
func (r *Retrieval) progress(phase string, done, total int) {
	if r.Progress != nil {
		r.Progress(phase, done, total)
	}
}

// Run encodes, scores and ranks. It ends early with the error of ctx.
func (r Retrieval) Run(ctx context.Context) (Scores, error) {
	if err := r.check(); err != nil {
		return Scores{}, err
	}
	members := append([]Member{r.Member}, r.With...)
	corr, err := r.correspondence()
	if err != nil {
		return Scores{}, err
	}
	folds, err := corr.Folds(max(1, r.Folds))
	if err != nil {
		return Scores{}, err
	}
	g := &gallery{r: &r, ctx: ctx}
	if err := g.encode(members); err != nil {
		return Scores{}, err
	}
	var scored, rerank, chance, worst, tied []eval.Metrics
	metrics := (*eval.Ranks).Metrics
	if r.MeanTies {
		metrics = (*eval.Ranks).MeanMetrics
	}
	var precise []eval.Precision
	var queries *eval.Queries
	for i, f := range folds {
		first, second, err := g.rank(f)
		if err != nil && len(folds) > 1 {
			err = fmt.Errorf("tasks: fold %d, images %d to %d: %w", i, f.First, f.First+f.Images-1, err)
		}
		if err != nil {
			return Scores{}, err
		}
		scored, chance = append(scored, metrics(first)), append(chance, f.Corr.Chance())
		if len(folds) == 1 {
			queries = first.Queries(f.Corr)
		}
		last := first
		if second != nil {
			last, rerank = second, append(rerank, metrics(second))
		}
		worst, tied = append(worst, last.Metrics()), append(tied, last.MeanMetrics())
		if corr.Several() {
			p, err := g.precision(f)
			if err != nil {
				return Scores{}, err
			}
			precise = append(precise, p)
		}
	}
	s := Scores{Score: scoreName(members), First: eval.Mean(scored), Chance: eval.Mean(chance),
		Images: corr.NumImages(), Texts: corr.NumTexts(), Queries: queries}
	s.WorstRMean, s.TiedRMean, s.MeanCosine = eval.Mean(worst).RMean(), eval.Mean(tied).RMean(), g.members.meanCosine()
	if precise != nil {
		p := eval.MeanPrecision(precise)
		s.Precision = &p
	}
	if rerank != nil {
		m := eval.Mean(rerank)
		s.Rerank = &m
	}
	s.Leading, err = g.leading(folds, metrics)
	return s, err
}
