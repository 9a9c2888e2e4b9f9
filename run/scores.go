package run

import (
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

// logPrefix is what stands before the values of a task in metrics.jsonl. The values of TaskSentences name their tasks themselves.
func logPrefix(task string) string {
	if task == TaskSentences {
		return "eval/"
	}
	return "eval/" + task + "/"
}

// logged returns the values of an outcome as metrics.jsonl names them.
func logged(o Scores) map[string]float64 {
	values := map[string]float64{}
	for k, v := range o.Values() {
		values[logPrefix(o.Task())+k] = v
	}
	return values
}
