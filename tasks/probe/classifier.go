package probe

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Classifier says how a linear classifier is fitted to frozen features.
type Classifier struct {
	Engine     *kernel.Engine
	Decay      float64 // see eval.ProbeOptions
	Hold       float64 // share of the training rows on which the decay is chosen; 0: Decay it is
	Neighbours int     // that vote beside the classifier; 0: none do
}

// Labelled is encoded rows with their classes.
type Labelled struct {
	Features []float32 // (n, D)
	Labels   []int32
}

// Classify fits a classifier to train and tests it on test.
func (c Classifier) Classify(ctx context.Context, train, test Labelled, names []string,
	progress func(phase string, done, total int)) (Scores, error) {
	k := len(names)
	s := Scores{Train: len(train.Labels), Test: len(test.Labels), Classes: k, Decay: c.Decay}
	if c.Hold > 0 {
		fitted := func(done, total int) {
			if progress != nil {
				progress("choosing the decay", done, total)
			}
		}
		choice, err := eval.ChooseDecay(ctx, c.Engine, train.Features, train.Labels, k, c.Hold, fitted)
		if err != nil {
			return s, err
		}
		s.Decay, s.Held, s.Chosen = choice.Decay, choice.Top1, true
	}
	linear, err := eval.FitProbe(ctx, c.Engine, train.Features, train.Labels,
		eval.ProbeOptions{Classes: k, Decay: s.Decay})
	if err != nil {
		return s, err
	}
	predicted, err := linear.Predict(test.Features, s.Test)
	if err != nil {
		return s, err
	}
	s.Top1 = eval.Accuracy(predicted, test.Labels)
	s.PerClass = eval.TableOf(names, predicted, test.Labels)
	s.MeanOfClasses = s.PerClass.MeanOfClasses()
	if c.Neighbours > 0 {
		predicted, err = eval.NearestNeighbours(ctx, c.Engine, train.Features, train.Labels, k, test.Features, s.Test,
			c.Neighbours)
		if err != nil {
			return s, err
		}
		s.Neighbours, s.Voted = eval.Accuracy(predicted, test.Labels), true
	}
	commonest := eval.Commonest(train.Labels, k)
	s.Chance = eval.Accuracy(slices.Repeat([]int32{commonest}, s.Test), test.Labels)
	return s, nil
}
