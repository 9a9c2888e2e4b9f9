package run

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// reID searches the images of the split for others of their identity.
func (e Evaluation) reID(ctx context.Context) (Scores, error) {
	c := e.Config
	if c.Has(section.Sentences) {
		return nil, noImages(c, TaskReID)
	}
	if e.Set == nil || e.Set.Eval == nil {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model with an image encoder: model.system %q has none", TaskReID, c.Model.System)}
	}
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	s, err := tasks.ReID{
		Model: e.Model.Image(), Set: e.Set.Eval, Score: score, Engine: e.Engine, BatchSize: c.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return ReID{s}, err
}

// reIDMetric is the metric of checkpoints of a system of identities, as metrics.jsonl names it.
const reIDMetric = "eval/" + TaskReID + "/map"

// ReID is the outcome of a search by identities.
type ReID struct{ tasks.ReIDScores }

// Task implements Scores.
func (r ReID) Task() string { return TaskReID }

// Metric is the mean average precision.
func (r ReID) Metric() checkpoint.Metric { return checkpoint.Metric{Name: reIDMetric, Value: r.MAP} }

// Values implements Scores.
func (r ReID) Values() map[string]float64 { return r.Map() }

// Size implements Scores.
func (r ReID) Size() string {
	return fmt.Sprintf("%d queries, %d gallery images", r.Queries, r.Gallery)
}

// Line implements Scores.
func (r ReID) Line() string {
	return fmt.Sprintf("%s mAP %.2f, R@1 %.2f, R@5 %.2f, mINP %.2f, chance mAP %.2f R@1 %.2f", r.Score, r.MAP, r.R1, r.R5, r.MINP, r.ChanceMAP, r.ChanceR1)
}

// JSON implements Scores.
func (r ReID) JSON(split, path string) any {
	return struct {
		Task      string      `json:"task"`
		Split     string      `json:"split"`
		Path      string      `json:"path"`
		Queries   int         `json:"queries"`
		Unmatched int         `json:"unmatched,omitempty"` // queries without a right answer in the gallery, left out
		Gallery   int         `json:"gallery"`
		Score     string      `json:"score"` // how images were compared
		Found     eval.Values `json:"found"`
		Chance    eval.Values `json:"chance"`
		Metric    string      `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{TaskReID, split, path, r.Queries, r.Unmatched, r.Gallery, r.ReIDScores.Score, r.Identities.Values(),
		eval.Values{{Name: "map", Value: r.ChanceMAP}, {Name: "r1", Value: r.ChanceR1}}, r.Metric().Name}
}
