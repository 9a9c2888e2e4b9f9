package sentencepairs

import (
	"fmt"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome of a model on the pairs of sentences that it was fine-tuned for.
type Scores struct {
	Of       string // task of sentence pairs
	Pairs    int
	Classes  []string         // nil of scores
	Accuracy float64          // share of the pairs whose class has the largest logit, in percent
	Majority float64          // of the answer that is always the commonest class
	Scores   eval.Correlation // of what is predicted with the scores
}

// Task implements tasks.Scores.
func (Scores) Task() string { return Name }

// Metric is the accuracy, or Spearman's correlation of scores, in percent.
func (s Scores) Metric() checkpoint.Metric {
	name, value := "accuracy", s.Accuracy
	if s.Classes == nil {
		name, value = "spearman", 100*s.Scores.Spearman
	}
	return checkpoint.Metric{Name: tasks.Logged(Name, name), Value: value}
}

// Values implements tasks.Scores: in percent.
func (s Scores) Values() map[string]float64 {
	if s.Classes == nil {
		return map[string]float64{"spearman": 100 * s.Scores.Spearman, "pearson": 100 * s.Scores.Pearson}
	}
	return map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority}
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	if s.Classes == nil {
		return fmt.Sprintf("%s Spearman %.2f, Pearson %.2f", s.Of, 100*s.Scores.Spearman, 100*s.Scores.Pearson)
	}
	return fmt.Sprintf("%s accuracy %.2f (majority %.2f)", s.Of, s.Accuracy, s.Majority)
}

// Size implements tasks.Scores.
func (s Scores) Size() string { return fmt.Sprintf("%d pairs of sentences", s.Pairs) }

// Table implements tasks.Scores.
func (s Scores) Table() string { return s.Line() + "\n" }

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	return struct {
		Task   string             `json:"task"`
		Of     string             `json:"of"` // the task of sentence pairs
		Split  string             `json:"split"`
		Path   string             `json:"path"`
		Pairs  int                `json:"pairs"`
		Values map[string]float64 `json:"values"`
		Metric string             `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{Name, s.Of, split, path, s.Pairs, s.Values(), s.Metric().Name}
}
