// Package migration is the tasks of stored features: what an index of an old model gives to queries of a new one, and
// what an alignment keeps of neighbourhoods.
package migration

import (
	"context"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/tasks"
)

// Names of the tasks.
const (
	Name           = "migration"
	NeighboursName = "neighbours"
)

// Task is what an index of the old model gives to queries of the new one.
var Task = tasks.Task{
	Name: Name, Metric: "mapped_r10", MetricTitle: "recall@10", Needs: []tasks.Need{tasks.NeedsStored},
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		texts, score, err := stored(s)
		if err != nil {
			return nil, err
		}
		return Migration{
			Image: s.Model.Image, Text: s.Model.Text, Images: s.Galleries.Images(), Texts: texts,
			TextImage: s.Galleries.TextImage, Score: score, Engine: s.Engine, Encoding: s.Encoding,
		}.Run(ctx)
	},
}

// NeighboursTask is what an alignment keeps of the neighbourhoods of stored features.
var NeighboursTask = tasks.Task{
	Name: NeighboursName, Metric: "rank", MetricTitle: "mean rank", Unbounded: true, Needs: []tasks.Need{tasks.NeedsStored},
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		texts, score, err := stored(s)
		if err != nil {
			return nil, err
		}
		return Neighbours{
			Image: s.Model.Image, Text: s.Model.Text, Images: s.Galleries.Images(), Texts: texts, Space: score.Space,
			Engine: s.Engine, Encoding: s.Encoding,
		}.Run(ctx)
	},
}

// stored returns the texts of a split of stored features and the score of pairs.
func stored(s *tasks.Setup) (data.Gallery, scoring.Score, error) {
	texts, err := s.Galleries.Texts(nil)
	if err != nil {
		return nil, scoring.Score{}, err
	}
	score, err := s.Model.Score()
	return texts, score, err
}
