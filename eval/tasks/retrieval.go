package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/eval"
)

// Matcher is a matching head over pairs of encoded rows, such as *model.Matcher.
type Matcher interface {
	// Match scores n pairs: text states (n*L, E) with lengths (n), and for each the index
	// of its image among the states of k images (k*T, D).
	Match(ctx context.Context, states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error)
}

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
	With      []Member          // models whose scores of the same split are averaged with those of Member
	Matcher   Matcher           // may be nil without re-ranking
	TextImage func(j int) int   // row of the image of text j
	ImageID   func(i int) int64 // images of one id are right answers for each other's texts
	BatchSize int               // images or texts encoded at a time, at least 1
	RerankTop int               // candidates re-scored per query; 0: none
	// Folds cuts the gallery into that many folds of consecutive images, ranked (and
	// re-ranked) on their own; the metrics are the means. 0 and 1: the whole gallery.
	Folds int
	// MeanTies takes the mean over all orders of candidates of equal scores, instead of the order against the
	// model.
	MeanTies bool
	Workers  int            // goroutines that read rows; 0: 1
	Group    parallel.Group // processes that encode together, see Encoding; nil: this one alone
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// Scores is what an evaluation found.
type Scores struct {
	Score  string        // how pairs were compared, such as "cosine"
	First  eval.Metrics  // by that score
	Rerank *eval.Metrics // nil without re-ranking
	Chance eval.Metrics  // of a random order, in galleries of the same size
	// Precision is that of the pair score, nil where every query has one right answer.
	Precision *eval.Precision
	Images    int
	Texts     int
	// The mean of recalls of the last ranking where equal scores count against the model, and over all orders of them,
	// whatever MeanTies.
	WorstRMean, TiedRMean float64
	// MeanCosine is that of two images and of two texts, 0 where no features are compared.
	MeanCosine [2]float64
}

// Final returns the metrics of the last ranking: the re-ranked ones if there are any.
func (s Scores) Final() eval.Metrics {
	if s.Rerank != nil {
		return *s.Rerank
	}
	return s.First
}

// RerankedName is the column of the re-ranked metrics for people.
const RerankedName = "re-ranked"

// Columns returns the metrics of every ranking with its name for people.
func (s Scores) Columns() []eval.Result {
	results := []eval.Result{{Name: s.Score, Metrics: s.First}}
	if s.Rerank != nil {
		results = append(results, eval.Result{Name: RerankedName, Metrics: *s.Rerank})
	}
	return results
}

// Table formats the scores for people.
func (s Scores) Table() string {
	text := eval.Table(s.Columns(), s.Chance)
	if p := s.Precision; p != nil {
		text += fmt.Sprintf("\n%-30s  %8s  %8s  %8s\n", "precision by "+s.Score, "P@5 %", "P@10 %", "chance")
		text += fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.2f\n", "image to text", p.I2T.P5, p.I2T.P10, p.I2TChance)
		text += fmt.Sprintf("%-30s  %8.1f  %8.1f  %8.2f\n", "text to image", p.T2I.P5, p.T2I.P10, p.T2IChance)
	}
	return text
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
	for i, f := range folds {
		first, second, err := g.rank(f)
		if err != nil && len(folds) > 1 {
			err = fmt.Errorf("tasks: fold %d, images %d to %d: %w", i, f.First, f.First+f.Images-1, err)
		}
		if err != nil {
			return Scores{}, err
		}
		scored, chance = append(scored, metrics(first)), append(chance, f.Corr.Chance())
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
		Images: corr.NumImages(), Texts: corr.NumTexts()}
	s.WorstRMean, s.TiedRMean, s.MeanCosine = eval.Mean(worst).RMean(), eval.Mean(tied).RMean(), g.members.meanCosine()
	if precise != nil {
		p := eval.MeanPrecision(precise)
		s.Precision = &p
	}
	if rerank != nil {
		m := eval.Mean(rerank)
		s.Rerank = &m
	}
	return s, nil
}
