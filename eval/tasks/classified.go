package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
)

// Classified compares the classes that a model gives to examples with their own.
type Classified struct {
	Model    RowClassifier
	Examples data.Examples
	Gallery  data.Gallery // the examples as rows
	Encoding
}

// ClassifiedScores are the outcome.
type ClassifiedScores struct {
	Examples int
	Unknown  int              // without a class, which the rest leaves out
	Table    *eval.ClassTable // classes with what was said of them
	Accuracy float64          // in percent
	Majority float64          // of the answer that is always the commonest class, in percent
	Kinds    []KindScore      // by what is asked, in the order of their names; nil where examples are of no kind
	Said     []int32          // class of each example
	Logits   []float32        // (Examples, classes)
}

// KindScore is the outcome of the examples of a kind.
type KindScore struct {
	Kind     string  `json:"kind"`
	Examples int     `json:"examples"`
	Accuracy float64 `json:"accuracy"` // in percent
}

// Run asks the model about every example. It ends early with the error of ctx. Scores of NaN are an
// *eval.NonFiniteError.
func (t Classified) Run(ctx context.Context) (ClassifiedScores, error) {
	names := t.Examples.Labels()
	s := ClassifiedScores{Examples: t.Examples.Len(), Table: eval.NewClassTable(names)}
	right, all := map[string]int{}, map[string]int{}
	at, good := 0, 0
	err := t.batches(ctx, t.Model.Columns(), t.Gallery, "judging examples", func(b *batch.Batch, k int) error {
		out, err := t.Model.Logits(ctx, b)
		if err != nil {
			return err
		}
		n := len(out) / b.Rows()
		for i := range k {
			row := out[i*n : (i+1)*n]
			e := t.Examples.Example(at + i)
			best, err := eval.Likeliest(row)
			if err != nil {
				return fmt.Errorf("tasks: example %d: %w", at+i, err)
			}
			said := int32(best)
			s.Said, s.Logits = append(s.Said, said), append(s.Logits, row...)
			if e.Label == data.UnknownLabel {
				s.Unknown++
				continue
			}
			s.Table.Add(e.Label, said)
			all[e.Kind]++
			if said == e.Label {
				good++
				right[e.Kind]++
			}
		}
		at += k
		return nil
	})
	if known := at - s.Unknown; err == nil && known > 0 {
		s.Accuracy, s.Majority = percent(good, known), percent(slices.Max(s.Table.Images), known)
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if kind != "" {
			s.Kinds = append(s.Kinds, KindScore{kind, all[kind], percent(right[kind], all[kind])})
		}
	}
	return s, err
}

// percent is the share of n in all.
func percent(n, all int) float64 { return 100 * float64(n) / float64(max(1, all)) }
