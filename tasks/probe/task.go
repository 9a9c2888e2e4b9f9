// Package probe is what frozen features tell about classes, of images and of pairs of texts.
package probe

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
)

// Names of the tasks.
const (
	Name     = "probe"
	TextName = "textprobe"
)

// Task is the linear probe of images: fitted to the training images as they are, tested on the split.
var Task = tasks.Task{
	Name: Name, Title: "Linear probe", Beside: true, Metric: "top1", MetricTitle: "linear probe",
	Needs:    []tasks.Need{tasks.NeedsEncoder},
	Default:  func(s *tasks.Setup) bool { return !s.System.Texts && !s.System.Words && !s.System.Identities },
	Ready:    ready,
	Evaluate: evaluate,
}

// TextTask is the linear probe of pairs of texts, of files of its own.
var TextTask = tasks.Task{
	Name: TextName, Title: "Linear probe of text pairs", Metric: "top1", MetricTitle: "linear probe",
	Needs:    []tasks.Need{tasks.NeedsWords},
	OwnFiles: func(*tasks.Setup) bool { return true },
	Inputs:   func(s *tasks.Setup) []source.Input { return tasks.Of[*EvalTexts](s).Inputs(s.Source) },
	Open: func(_ context.Context, s *tasks.Setup) (any, error) {
		return tasks.Of[*EvalTexts](s).Open(s.Source)
	},
	Evaluate: evaluateTexts,
}

// Pairs is what a probe of pairs of texts is fitted to and tested on.
type Pairs struct {
	Train, Test           []data.TextPair
	TrainLabel, TestLabel []int32
	Classes               []string // names, sorted
}

// NewClassifier is the classifier of a setup, without neighbours that vote.
func NewClassifier(s *tasks.Setup) Classifier {
	o := tasks.Of[Eval](s)
	return Classifier{Engine: s.Engine, Decay: o.ProbeDecay, Hold: o.ProbeHold}
}

// ready asks for classes.
func ready(s *tasks.Setup) error {
	if s.Set != nil { // samples are not a split
		if _, ok := s.Set.Labels(); ok {
			return nil
		}
	}
	return section.Errors{{Path: "eval.beside", Value: []string{Name},
		Msg:  fmt.Sprintf("must not have %q, as data.kind %q has no classes", Name, s.Source.Data.Kind),
		Hint: `use data.kind "folder" or "scenes"`}}
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	train, err := s.Train(ctx, false)
	if err != nil {
		return nil, err
	}
	o, c := tasks.Of[Eval](s), NewClassifier(s)
	c.Neighbours = o.ProbeNeighbours
	return Probe{Model: s.Model.Image, Train: train, Samples: o.ProbeSamples, Set: s.Set, Classifier: c,
		Encoding: s.Encoding}.Run(ctx)
}

func evaluateTexts(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	p := s.Opened.(*Pairs)
	labelled := func(pairs []data.TextPair, labels []int32) LabelledTexts {
		var a, b []string
		for _, p := range pairs {
			a, b = append(a, p.A), append(b, p.B)
		}
		return LabelledTexts{s.Listed(a), s.Listed(b), labels}
	}
	scores, err := TextProbe{
		Model: s.Model.Text, Train: labelled(p.Train, p.TrainLabel), Test: labelled(p.Test, p.TestLabel),
		Classes: p.Classes, Classifier: NewClassifier(s), Encoding: s.Encoding,
	}.Run(ctx)
	scores.OfTexts = true
	return scores, err
}
