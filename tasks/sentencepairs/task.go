// Package sentencepairs is what a model that was fine-tuned on pairs of sentences predicts of those of a split.
package sentencepairs

import (
	"context"
	"fmt"

	pairs "github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task and its data.kind.
const Name = "sentence_pairs"

// Task is fine-tuning on pairs of sentences.
var Task = tasks.Task{
	Name: Name, Kind: Name, Alone: true,
	Needs:   []tasks.Need{tuned},
	Default: func(s *tasks.Setup) bool { return s.System.Pairs },
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		o := tasks.Of[Options](s)
		return Predicted{Model: s.Model.Classifier, Set: s.Opened.(*pairs.Set), Columns: o.Columns, Encoding: s.Encoding}.Run(ctx)
	},
	Kept: func(s *tasks.Setup, _ func(string) bool) []tasks.Kept {
		if tasks.Of[Options](s).Classes == 0 {
			return []tasks.Kept{{Key: tasks.Logged(Name, "spearman"), Name: "Spearman"}}
		}
		return []tasks.Kept{{Key: tasks.Logged(Name, "accuracy"), Name: "accuracy"}}
	},
}

// Options are what data.sentence_pairs says.
type Options struct {
	Classes int                // of the task; 0: scores
	Columns pairs.StreamConfig // how pairs become columns
}

// tuned asks for a model that was fine-tuned on pairs of sentences.
func tuned(s *tasks.Setup) *tasks.MisfitError {
	if s.System.Pairs {
		return nil
	}
	m := s.Misfit("a model that was fine-tuned on pairs of sentences, which model.system %q is not", s.System.Name)
	if s.System.Words {
		m.Cure = "use --task " + sentences.Name
	}
	return m
}
