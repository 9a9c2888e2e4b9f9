package run

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// siblings searches the captions of the split for others of their image, by the score of the model.
func (e Evaluation) siblings(ctx context.Context) (Scores, error) {
	c := e.Config
	if err := e.noWords(); err != nil {
		return nil, err
	}
	set, err := e.Set.Eval.Rephrased()
	if err != nil {
		return nil, err
	}
	if !set.HasSiblings() {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs images with several captions, and no image of this split of data.kind %q has two: use another split, or data of another kind", TaskSiblings, c.Data.Kind)}
	}
	texts, err := set.Texts(textColumns(c, e.Tokenizer))
	if err != nil {
		return nil, err
	}
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	s, err := tasks.ReID{
		Model: e.Model.Text(), Set: captions{texts, set}, Score: score, Engine: e.Engine, BatchSize: c.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Siblings{s}, err
}

// captions are the texts of a split as what is searched by identities: theirs are those of their images.
type captions struct {
	texts data.Gallery
	set   *data.Eval
}

var _ tasks.IdentifiedSet = captions{}

// Images implements tasks.IdentifiedSet: what is encoded are the texts.
func (c captions) Images() data.Gallery { return c.texts }

// Identity implements tasks.IdentifiedSet.
func (c captions) Identity(j int) int64 { return c.set.ImageID(c.set.TextImage(j)) }

// Camera implements tasks.IdentifiedSet.
func (c captions) Camera(int) int32 { return -1 }

// Role implements tasks.IdentifiedSet.
func (c captions) Role(int) data.Role { return data.Either }

// siblingsMetric is the metric of checkpoints of a system of sentences, as metrics.jsonl names it.
const siblingsMetric = "eval/" + TaskSiblings + "/map"

// Siblings is the outcome of a search of captions for other captions of their image.
type Siblings struct{ tasks.ReIDScores }

// Task implements Scores.
func (s Siblings) Task() string { return TaskSiblings }

// Metric is the mean average precision.
func (s Siblings) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: siblingsMetric, Value: s.MAP}
}

// Values implements Scores.
func (s Siblings) Values() map[string]float64 { return s.Map() }

// Size implements Scores.
func (s Siblings) Size() string { return fmt.Sprintf("%d captions", s.Queries+s.Unmatched) }

// Line implements Scores.
func (s Siblings) Line() string {
	return fmt.Sprintf("mAP %.2f, R@1 %.2f, R@5 %.2f, mINP %.2f, chance mAP %.2f R@1 %.2f", s.MAP, s.R1, s.R5, s.MINP, s.ChanceMAP, s.ChanceR1)
}

// JSON implements Scores.
func (s Siblings) JSON(split, path string) any {
	return struct {
		Task      string      `json:"task"`
		Split     string      `json:"split"`
		Path      string      `json:"path"`
		Queries   int         `json:"queries"`
		Unmatched int         `json:"unmatched,omitempty"` // captions without another of their image, left out
		Found     eval.Values `json:"found"`
		Chance    eval.Values `json:"chance"`
		Metric    string      `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{TaskSiblings, split, path, s.Queries, s.Unmatched, s.Identities.Values(),
		eval.Values{{Name: "map", Value: s.ChanceMAP}, {Name: "r1", Value: s.ChanceR1}}, s.Metric().Name}
}
