package run

import (
	"fmt"

	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are what an evaluation found.
type Scores interface {
	// Task names the task.
	Task() string
	// Metric is the number by which checkpoints are kept, larger is better, with its name
	// in metrics.jsonl.
	Metric() checkpoint.Metric
	// Values are the numbers of the log by name, such as rsum.
	Values() map[string]float64
	// Line is the outcome in one line.
	Line() string
	// Size says what was evaluated on, such as 10 images, 50 texts.
	Size() string
	// Table is the outcome for people.
	Table() string
	// JSON is the form for programs; path is what was evaluated.
	JSON(split, path string) any
}

// logPrefix is what stands before the values of a task in metrics.jsonl.
func logPrefix(task string) string { return "eval/" + task + "/" }

// logged returns the values of an outcome as metrics.jsonl names them.
func logged(o Scores) map[string]float64 {
	values := map[string]float64{}
	for k, v := range o.Values() {
		values[logPrefix(o.Task())+k] = v
	}
	return values
}

// probeMetric is the metric of checkpoints of a probe, as metrics.jsonl names it.
const probeMetric = "eval/" + TaskProbe + "/top1"

// Probe is the outcome of the linear probe.
type Probe struct{ tasks.ProbeScores }

// Task implements Scores.
func (p Probe) Task() string { return TaskProbe }

// Metric is the accuracy of the linear classifier.
func (p Probe) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: probeMetric, Value: p.Top1}
}

// Values implements Scores.
func (p Probe) Values() map[string]float64 { return p.Map() }

// Size implements Scores.
func (p Probe) Size() string {
	return fmt.Sprintf("%d training images, %d images, %d classes", p.Train, p.Test, p.Classes)
}

// Line implements Scores.
func (p Probe) Line() string {
	return fmt.Sprintf("linear probe top-1 %.2f, k-NN top-1 %.2f, chance %.2f", p.Top1, p.Neighbours, p.Chance)
}

// JSON implements Scores.
func (p Probe) JSON(split, path string) any {
	return struct {
		Task    string  `json:"task"`
		Split   string  `json:"split"`
		Path    string  `json:"path"`
		Train   int     `json:"train"`
		Images  int     `json:"images"`
		Classes int     `json:"classes"`
		Top1    float64 `json:"top1"`
		KNN     float64 `json:"knn_top1"`
		Chance  float64 `json:"chance"`
	}{TaskProbe, split, path, p.Train, p.Test, p.Classes, p.Top1, p.Neighbours, p.Chance}
}
