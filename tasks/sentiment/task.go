// Package sentiment predicts the sentiment of utterances from words, audio and vision.
package sentiment

import (
	"context"

	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/sentences"
)

// Name is the name of the task.
const Name = "sentiment"

// Task is the sentiment of utterances, of files of their own.
var Task = tasks.Task{
	Name: Name, Beside: true, Metric: "accuracy7", MetricTitle: "accuracy-7", Alone: true,
	Needs:    []tasks.Need{tasks.NeedsWords},
	OwnFiles: func(*tasks.Setup) bool { return true },
	Inputs:   func(s *tasks.Setup) []source.Input { return tasks.Of[*Eval](s).Inputs(s.Source) },
	Open: func(_ context.Context, s *tasks.Setup) (any, error) {
		p, err := tasks.Of[*Eval](s).Open(s.Source)
		return p, err
	},
	Evaluate: evaluate,
}

// Parts are the utterances that are opened.
type Parts struct{ Train, Test Part }

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	p, o := s.Opened.(Parts), tasks.Of[Eval](s)
	scores, err := Sentiment{Encoder: sentences.NewEncoder(s), Modalities: o.Modalities, Penalty: o.Decay,
		Train: p.Train, Test: p.Test}.Run(ctx)
	scores.NotFinite = p.Train.Set.NotFinite + p.Test.Set.NotFinite
	return scores, err
}
