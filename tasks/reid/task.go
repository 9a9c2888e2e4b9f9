// Package reid searches images for others of their identity, and captions for others of their image.
package reid

import (
	"context"

	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task of images.
const Name = "reid"

// Task is re-identification: what each image finds of its identity.
var Task = tasks.Task{
	Name: Name, Metric: "map", MetricTitle: "mAP",
	Needs:   []tasks.Need{tasks.NeedsEncoder},
	Default: func(s *tasks.Setup) bool { return s.System.Identities },
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		return search(ctx, s, s.Model.Image, s.Set)
	},
}

// search searches a set by the score of the model.
func search(ctx context.Context, s *tasks.Setup, side tasks.Encoder, set IdentifiedSet) (Scores, error) {
	score, err := s.Model.Score()
	if err != nil {
		return Scores{}, err
	}
	return ReID{Model: side, Set: set, Score: score, Engine: s.Engine, Encoding: s.Encoding}.Run(ctx)
}
