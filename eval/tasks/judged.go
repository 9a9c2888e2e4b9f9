package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
)

// RowClassifier classifies or scores rows of a batch, such as *model.Classifier.
type RowClassifier interface {
	// Columns are the columns of a batch that Logits reads.
	Columns() []batch.Column
	// Logits returns logits (n, classes) of the n rows of b, or scores (n, 1). They are overwritten by the next call.
	// It ends early with the error of ctx.
	Logits(ctx context.Context, b *batch.Batch) ([]float32, error)
}

// Judged compares what a model says of pairs of sentences with their classes or scores.
type Judged struct {
	Model   RowClassifier
	Set     *sentencepairs.Set
	Columns sentencepairs.StreamConfig // how pairs become columns
	Encoding
}

// JudgedScores are the outcome.
type JudgedScores struct {
	Task     string
	Pairs    int
	Classes  []string         // nil of scores
	Accuracy float64          // share of the pairs whose class has the largest logit, in percent
	Majority float64          // of the answer that is always the commonest class
	Scores   eval.Correlation // of what is said with the scores
}

// judgedPairs is a set as a gallery.
type judgedPairs struct {
	set *sentencepairs.Set
	cfg sentencepairs.StreamConfig
}

func (g judgedPairs) Len() int                        { return len(g.set.Pairs) }
func (g judgedPairs) Columns() []data.Column          { return g.cfg.Columns() }
func (g judgedPairs) Fill(i int, row batch.Row) error { return g.set.Fill(i, g.cfg, row) }

// Run asks the model about every pair. It ends early with the error of ctx. Scores of NaN are an *eval.NonFiniteError.
func (t Judged) Run(ctx context.Context) (JudgedScores, error) {
	s := JudgedScores{Task: t.Set.Task.Name, Pairs: len(t.Set.Pairs), Classes: t.Set.Task.Classes}
	counts := make([]int, max(1, len(s.Classes)))
	var given, scores []float64
	right, at := 0, 0
	err := t.batches(ctx, t.Model.Columns(), judgedPairs{t.Set, t.Columns}, "reading pairs of sentences",
		func(b *batch.Batch, k int) error {
			out, err := t.Model.Logits(ctx, b)
			if err != nil {
				return err
			}
			n := len(out) / b.Rows()
			for i := range k {
				p, row := t.Set.Pairs[at+i], out[i*n:(i+1)*n]
				said, err := eval.Likeliest(row)
				if err != nil {
					return fmt.Errorf("tasks: pair %d: %w", at+i, err)
				}
				if s.Classes == nil {
					given, scores = append(given, float64(row[0])), append(scores, p.Score)
					continue
				}
				if counts[p.Label]++; said == int(p.Label) {
					right++
				}
			}
			at += k
			return nil
		})
	if err != nil || at == 0 {
		return s, err
	}
	if s.Classes == nil {
		s.Scores = eval.Correlate(given, scores)
		return s, nil
	}
	s.Accuracy, s.Majority = 100*float64(right)/float64(at), 100*float64(slices.Max(counts))/float64(at)
	return s, nil
}
