package run

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// retrievalMetric is the metric of checkpoints by a ranking, as metrics.jsonl names it; that
// of logs of earlier versions with an empty ranking.
func retrievalMetric(ranking string) string {
	if ranking != "" {
		ranking += "/"
	}
	return logPrefix(TaskRetrieval) + ranking + eval.RMeanName
}

// Retrieval is the outcome of image-text retrieval.
type Retrieval struct {
	tasks.Scores
	KeepBy string // train.keep_best_by; empty: config.KeepByBetter
}

// Task implements Scores.
func (r Retrieval) Task() string { return TaskRetrieval }

// kept returns the ranking that compares checkpoints, by its name in the log, with its name
// for people and its metrics.
func (r Retrieval) kept() (ranking, name string, m eval.Metrics) {
	better := r.Rerank != nil && r.Rerank.RMean() > r.First.RMean()
	if r.Rerank != nil && r.KeepBy != config.KeepByFirst && (better || r.KeepBy == config.KeepByRerank) {
		return eval.Reranked, tasks.RerankedName, *r.Rerank
	}
	return eval.First, r.Score, r.First
}

// Metric is the mean of all recalls of the ranking that train.keep_best_by chooses.
func (r Retrieval) Metric() checkpoint.Metric {
	ranking, _, m := r.kept()
	return checkpoint.Metric{Name: retrievalMetric(ranking), Value: m.RMean()}
}

// named says whether train.keep_best_by names a number of the evaluations, and no ranking.
func (r Retrieval) named() bool {
	t := config.Train{KeepBestBy: r.KeepBy}
	return t.KeepsByMetric()
}

// Values implements Scores: every ranking below its name, and the last one without.
func (r Retrieval) Values() map[string]float64 {
	values := r.Final().Map()
	add := func(ranking string, m eval.Metrics) {
		for _, v := range m.Values() {
			values[ranking+"/"+v.Name] = v.Value
		}
	}
	add(eval.First, r.First)
	if r.Rerank != nil {
		add(eval.Reranked, *r.Rerank)
	}
	add(eval.Random, r.Chance)
	if r.Precision != nil {
		for _, v := range r.Precision.Values() {
			values[eval.First+"/"+v.Name] = v.Value
		}
	}
	return values
}

// Size implements Scores.
func (r Retrieval) Size() string { return fmt.Sprintf("%d images, %d texts", r.Images, r.Texts) }

// Line implements Scores.
func (r Retrieval) Line() string {
	var parts []string
	for _, c := range r.Columns() {
		m := c.Metrics
		parts = append(parts, fmt.Sprintf("%s R@1 %.1f / %.1f R@10 %.1f / %.1f mean %.1f", c.Name, m.I2T.R1, m.T2I.R1, m.I2T.R10, m.T2I.R10, m.RMean()))
	}
	switch _, name, _ := r.kept(); {
	case r.named():
		parts = append(parts, "checkpoints compared by "+r.KeepBy)
	case r.Rerank != nil:
		parts = append(parts, "checkpoints compared by "+name)
	}
	return "image to text / text to image: " + strings.Join(parts, ", ")
}

// Table implements Scores.
func (r Retrieval) Table() string {
	text := r.Scores.Table()
	switch _, name, _ := r.kept(); {
	case r.named():
		text += fmt.Sprintf("\nCheckpoints are compared by %s (train.keep_best_by).\n", r.KeepBy)
	case r.Rerank != nil:
		text += fmt.Sprintf("\nCheckpoints are compared by the mean of recalls of: %s (train.keep_best_by).\n", name)
	}
	return text
}

// JSON implements Scores.
func (r Retrieval) JSON(split, path string) any {
	var precision eval.Values
	if r.Precision != nil {
		precision = r.Precision.Values()
	}
	metric := r.Metric().Name
	if r.named() {
		metric = r.KeepBy
	}
	return retrievalJSON{Precision: precision, Task: TaskRetrieval, Split: split, Path: path, Images: r.Images, Texts: r.Texts,
		Score: r.Score, First: r.First, Rerank: r.Rerank, Chance: r.Chance, Metric: metric}
}

// retrievalJSON is the JSON form of Retrieval.
type retrievalJSON struct {
	Task   string        `json:"task"`
	Split  string        `json:"split"`
	Path   string        `json:"path"`
	Images int           `json:"images"`
	Texts  int           `json:"texts"`
	Score  string        `json:"score"` // how pairs were compared
	First  eval.Metrics  `json:"first"` // by that score
	Rerank *eval.Metrics `json:"rerank,omitempty"`
	Chance eval.Metrics  `json:"chance"`

	Precision eval.Values `json:"precision,omitempty"` // of the pair score, where queries have several right answers
	Metric    string      `json:"metric"`              // by which checkpoints are kept, as in metrics.jsonl
}
