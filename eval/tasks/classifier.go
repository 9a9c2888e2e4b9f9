package tasks

import (
	"context"
	"fmt"
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

// ProbeScores are percentages of the test rows that get their class.
type ProbeScores struct {
	Top1          float64 // by the linear classifier
	MeanOfClasses float64 // mean over the classes of the accuracy of each
	Neighbours    float64 // by the vote of nearest neighbours
	Voted         bool    // there was a vote
	Chance        float64 // by the class that is commonest in training
	Decay         float64 // of the classifier
	Held          float64 // accuracy of the chosen decay on the rows that were held for it; 0 where none were
	Chosen        bool    // the decay was chosen
	Train         int     // labelled training rows used
	Test          int     // labelled test rows
	Classes       int
	PerClass      *eval.ClassTable // what the rows of each class were taken for
}

// Map names the scores for logs.
func (s ProbeScores) Map() map[string]float64 {
	m := map[string]float64{"top1": s.Top1, "chance": s.Chance}
	if s.Voted {
		m["knn_top1"] = s.Neighbours
	}
	if s.Chosen {
		m["decay"] = s.Decay
	}
	return m
}

// Table formats the scores for people.
func (s ProbeScores) Table() string {
	text := fmt.Sprintf("%-12s %6s\n%-12s %6.2f\n", "", "top-1", "linear", s.Top1)
	if s.Voted {
		text += fmt.Sprintf("%-12s %6.2f\n", "k-NN", s.Neighbours)
	}
	text += fmt.Sprintf("%-12s %6.2f\n", "chance", s.Chance)
	if s.Chosen {
		text += fmt.Sprintf("\nThe decay %.3g was chosen, with %.2f on the training rows held for that.\n", s.Decay,
			s.Held)
	}
	return text + "\n" + s.PerClass.Table()
}

// labelled is encoded rows with their classes.
type labelled struct {
	features []float32 // (n, D)
	labels   []int32
}

// classify fits a classifier to train and tests it on test.
func (c Classifier) classify(ctx context.Context, train, test labelled, names []string,
	progress func(phase string, done, total int)) (ProbeScores, error) {
	k := len(names)
	s := ProbeScores{Train: len(train.labels), Test: len(test.labels), Classes: k, Decay: c.Decay}
	if c.Hold > 0 {
		fitted := func(done, total int) {
			if progress != nil {
				progress("choosing the decay", done, total)
			}
		}
		choice, err := eval.ChooseDecay(ctx, c.Engine, train.features, train.labels, k, c.Hold, fitted)
		if err != nil {
			return s, err
		}
		s.Decay, s.Held, s.Chosen = choice.Decay, choice.Top1, true
	}
	linear, err := eval.FitProbe(ctx, c.Engine, train.features, train.labels,
		eval.ProbeOptions{Classes: k, Decay: s.Decay})
	if err != nil {
		return s, err
	}
	predicted, err := linear.Predict(test.features, s.Test)
	if err != nil {
		return s, err
	}
	s.Top1 = eval.Accuracy(predicted, test.labels)
	s.PerClass = eval.TableOf(names, predicted, test.labels)
	s.MeanOfClasses = s.PerClass.MeanOfClasses()
	if c.Neighbours > 0 {
		predicted, err = eval.NearestNeighbours(ctx, c.Engine, train.features, train.labels, k, test.features, s.Test,
			c.Neighbours)
		if err != nil {
			return s, err
		}
		s.Neighbours, s.Voted = eval.Accuracy(predicted, test.labels), true
	}
	commonest := eval.Commonest(train.labels, k)
	s.Chance = eval.Accuracy(slices.Repeat([]int32{commonest}, s.Test), test.labels)
	return s, nil
}
