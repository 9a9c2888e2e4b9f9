package multimodal

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Classify compares the classes that a model predicts of samples with their own.
type Classify struct {
	Of      Variant
	Model   tasks.Classifier
	Samples data.Examples
	Rows    data.Gallery // the samples as rows
	tasks.Encoding
}

// Run asks the model about every sample. It ends early with the error of ctx. Scores of NaN are an
// *eval.NonFiniteError.
func (t Classify) Run(ctx context.Context) (Scores, error) {
	s := Scores{Of: t.Of, Samples: t.Samples, Examples: t.Samples.Len(),
		PerClass: eval.NewClassTable(t.Samples.Labels())}
	right, all := map[string]int{}, map[string]int{}
	at, good := 0, 0
	err := t.Batches(ctx, t.Model.Columns(), t.Rows, "judging examples", func(b *batch.Batch, k int) error {
		out, err := t.Model.Logits(ctx, b)
		if err != nil {
			return err
		}
		n := len(out) / b.Rows()
		for i := range k {
			row := out[i*n : (i+1)*n]
			e := t.Samples.Example(at + i)
			best, err := eval.Likeliest(row)
			if err != nil {
				return fmt.Errorf("tasks: example %d: %w", at+i, err)
			}
			class := int32(best)
			s.Predicted, s.Logits = append(s.Predicted, class), append(s.Logits, row...)
			if e.Label == data.UnknownLabel {
				s.Unknown++
				continue
			}
			s.PerClass.Add(e.Label, class)
			all[e.Kind]++
			if class == e.Label {
				good++
				right[e.Kind]++
			}
		}
		at += k
		return nil
	})
	if known := at - s.Unknown; err == nil && known > 0 {
		s.Accuracy, s.Majority = percent(good, known), percent(slices.Max(s.PerClass.Images), known)
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if kind != "" {
			s.Kinds = append(s.Kinds, tasks.KindScore{Kind: kind, Examples: all[kind],
				Accuracy: percent(right[kind], all[kind])})
		}
	}
	if t.Of.Group != nil && err == nil {
		s.Consistency, s.Sentences = consistency(t.Samples, s.Predicted, t.Of.Group)
	}
	return s, err
}

// percent is the share of n in all.
func percent(n, all int) float64 { return 100 * float64(n) / float64(max(1, all)) }

// consistency returns the share in percent of the groups of samples of which all classes are right, and how many groups
// there are.
func consistency(x data.Examples, predicted []int32, group func(e data.Example) string) (share float64, groups int) {
	wrong := map[string]bool{}
	for i, class := range predicted {
		if e := x.Example(i); e.Label != data.UnknownLabel {
			of := group(e)
			wrong[of] = wrong[of] || class != e.Label
		}
	}
	for _, w := range wrong {
		if !w {
			share++
		}
	}
	return 100 * share / float64(max(1, len(wrong))), len(wrong)
}
