package run

import (
	"fmt"

	"github.com/geoalign/geoalign/eval/tasks"
)

// Scores are what an evaluation found.
type Scores interface {
	// Task names the task.
	Task() string
	// Metric is the number by which checkpoints are kept, larger is better.
	Metric() float64
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

// logged returns the values of an outcome as metrics.jsonl names them.
func logged(o Scores) map[string]float64 {
	values := map[string]float64{}
	for k, v := range o.Values() {
		values["eval/"+o.Task()+"/"+k] = v
	}
	return values
}

// Retrieval is the outcome of image-text retrieval.
type Retrieval struct{ tasks.Scores }

// Task implements Scores.
func (r Retrieval) Task() string { return TaskRetrieval }

// Metric is the mean of all recalls.
func (r Retrieval) Metric() float64 { return r.Final().RMean() }

// Values implements Scores.
func (r Retrieval) Values() map[string]float64 { return r.Final().Map() }

// Size implements Scores.
func (r Retrieval) Size() string { return fmt.Sprintf("%d images, %d texts", r.Images, r.Texts) }

// Line implements Scores.
func (r Retrieval) Line() string {
	f := r.Final()
	return fmt.Sprintf("image to text R@1 %.1f R@10 %.1f, text to image R@1 %.1f R@10 %.1f, mean %.1f", f.I2T.R1, f.I2T.R10, f.T2I.R1, f.T2I.R10, f.RMean())
}

// JSON implements Scores.
func (r Retrieval) JSON(split, path string) any {
	e := retrievalJSON{Task: TaskRetrieval, Split: split, Path: path, Images: r.Images, Texts: r.Texts, Score: r.Score, First: r.First.Map(), Chance: r.Chance.Map()}
	if r.Rerank != nil {
		e.Rerank = r.Rerank.Map()
	}
	return e
}

// retrievalJSON is the JSON form of Retrieval.
type retrievalJSON struct {
	Task   string             `json:"task"`
	Split  string             `json:"split"`
	Path   string             `json:"path"`
	Images int                `json:"images"`
	Texts  int                `json:"texts"`
	Score  string             `json:"score"` // how pairs were compared
	First  map[string]float64 `json:"first"` // by that score
	Rerank map[string]float64 `json:"rerank,omitempty"`
	Chance map[string]float64 `json:"chance"`
}

// Probe is the outcome of the linear probe.
type Probe struct{ tasks.ProbeScores }

// Task implements Scores.
func (p Probe) Task() string { return TaskProbe }

// Metric is the accuracy of the linear classifier.
func (p Probe) Metric() float64 { return p.Top1 }

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
