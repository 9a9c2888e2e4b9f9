// Package sentencepairs is what a model that was fine-tuned on pairs of sentences predicts of those of a split.
package sentencepairs

import (
	"context"

	pairs "github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/sentences"
)

// Name is the name of the task and its data.kind.
const Name = "sentence_pairs"

// Task is fine-tuning on pairs of sentences.
var Task = tasks.Task{
	Name: Name, Kind: Name, Alone: true,
	Needs:   []tasks.Need{tuned},
	Default: func(s *tasks.Setup) bool { return s.System.Pairs },
	Open: func(_ context.Context, s *tasks.Setup) (any, error) {
		return source.OpenSentencePairs(s.Source, s.Split)
	},
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		return Predicted{Model: s.Model.Classifier, Set: s.Opened.(*pairs.Set),
			Columns: source.SentenceColumns(s.Source, s.Tokenizer()), Encoding: s.Encoding}.Run(ctx)
	},
	Kept: func(s *tasks.Setup, _ func(string) bool) []tasks.Kept {
		if tasks.Of[source.SentencePairs](s).Of().Scored() {
			return []tasks.Kept{{Key: tasks.Logged(Name, "spearman"), Name: "Spearman"}}
		}
		return []tasks.Kept{{Key: tasks.Logged(Name, "accuracy"), Name: "accuracy"}}
	},
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
