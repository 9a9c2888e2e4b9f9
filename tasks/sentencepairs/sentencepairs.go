package sentencepairs

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	pairs "github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Predicted compares what a model predicts of pairs of sentences with their classes or scores.
type Predicted struct {
	Model   tasks.Classifier
	Set     *pairs.Set
	Columns pairs.StreamConfig // how pairs become columns
	tasks.Encoding
}

// gallery is a set as a gallery.
type gallery struct {
	set *pairs.Set
	cfg pairs.StreamConfig
}

func (g gallery) Len() int                        { return len(g.set.Pairs) }
func (g gallery) Columns() []data.Column          { return g.cfg.Columns() }
func (g gallery) Fill(i int, row batch.Row) error { return g.set.Fill(i, g.cfg, row) }

// Run asks the model about every pair. It ends early with the error of ctx. Scores of NaN are an *eval.NonFiniteError.
func (t Predicted) Run(ctx context.Context) (Scores, error) {
	s := Scores{Of: t.Set.Task.Name, Pairs: len(t.Set.Pairs), Classes: t.Set.Task.Classes}
	counts := make([]int, max(1, len(s.Classes)))
	var found, scores []float64
	right, at := 0, 0
	err := t.Batches(ctx, t.Model.Columns(), gallery{t.Set, t.Columns}, "reading pairs of sentences",
		func(b *batch.Batch, k int) error {
			out, err := t.Model.Logits(ctx, b)
			if err != nil {
				return err
			}
			n := len(out) / b.Rows()
			for i := range k {
				p, row := t.Set.Pairs[at+i], out[i*n:(i+1)*n]
				predicted, err := eval.Likeliest(row)
				if err != nil {
					return fmt.Errorf("tasks: pair %d: %w", at+i, err)
				}
				if s.Classes == nil {
					found, scores = append(found, float64(row[0])), append(scores, p.Score)
					continue
				}
				if counts[p.Label]++; predicted == int(p.Label) {
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
		s.Scores = eval.Correlate(found, scores)
		return s, nil
	}
	s.Accuracy, s.Majority = 100*float64(right)/float64(at), 100*float64(slices.Max(counts))/float64(at)
	return s, nil
}
