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

// needsStored refuses a task of stored features for another system.
func (e Evaluation) needsStored() error {
	if e.Config.Has(section.Stored) {
		return nil
	}
	return &ArgumentError{fmt.Errorf("the task %s needs stored features, which model.system %q does not read: use --task %s", e.Task, e.Config.Model.System, DefaultTask(e.Config))}
}

// neighbours runs the task of neighbourhoods.
func (e Evaluation) neighbours(ctx context.Context) (Scores, error) {
	if err := e.needsStored(); err != nil {
		return nil, err
	}
	texts, err := e.Set.Texts(nil)
	if err != nil {
		return nil, err
	}
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	s, err := tasks.Neighbours{
		Image: e.Model.Image(), Text: e.Model.Text(), Images: e.Set.Images(), Texts: texts, Space: score.Space, Engine: e.Engine,
		BatchSize: e.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Neighbours{s}, err
}

// Neighbours is what an alignment keeps of the neighbourhoods of stored features.
type Neighbours struct{ tasks.NeighbourScores }

// Task implements Scores.
func (n Neighbours) Task() string { return TaskNeighbours }

// Metric is minus the mean rank of both sides.
func (n Neighbours) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskNeighbours) + "rank", Value: -(n.Image + n.Text) / 2}
}

// Values implements Scores.
func (n Neighbours) Values() map[string]float64 { return n.Map() }

// Size implements Scores.
func (n Neighbours) Size() string { return fmt.Sprintf("%d images, %d texts", n.Images, n.Texts) }

// Line implements Scores.
func (n Neighbours) Line() string {
	return fmt.Sprintf("mean rank of the %d nearest stored neighbours: images %.1f, texts %.1f, kept %.1f, chance %.1f", eval.PreservedNeighbours, n.Image, n.Text, n.Best, n.Chance[0])
}

// JSON implements Scores.
func (n Neighbours) JSON(split, path string) any {
	return struct {
		Task        string  `json:"task"`
		Split       string  `json:"split"`
		Path        string  `json:"path"`
		Images      int     `json:"images"`
		Texts       int     `json:"texts"`
		Neighbours  int     `json:"neighbours"`
		ImageRank   float64 `json:"image_rank"`
		TextRank    float64 `json:"text_rank"`
		Kept        float64 `json:"kept_rank"`
		ImageChance float64 `json:"image_chance_rank"`
		TextChance  float64 `json:"text_chance_rank"`
	}{TaskNeighbours, split, path, n.Images, n.Texts, eval.PreservedNeighbours, n.Image, n.Text, n.Best, n.Chance[0], n.Chance[1]}
}
