package tasks

import (
	"context"
	"io"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/sanity"
	"github.com/geoalign/geoalign/report"
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

// Classified is implemented by Scores of a task that tells classes.
type Classified interface {
	Scores
	// ClassTable says what the rows of each class were taken for.
	ClassTable() *eval.ClassTable
}

// Pictured is implemented by scores whose page shows examples, right and wrong.
type Pictured interface {
	Scores
	// ExamplesPage returns the page without its title and facts. It reads pictures, and asks the model for their heat
	// maps. It ends early with the error of ctx.
	ExamplesPage(ctx context.Context) (report.ExamplesPage, error)
}

// Drawn is implemented by scores with a page of their own.
type Drawn interface {
	WritePage(w io.Writer, title string, step int, facts []report.Fact) error
}

// Resulted is implemented by scores of tasks whose answers are handed in to an evaluation server.
type Resulted interface {
	// WriteResults writes the answers in the form of the task's server, or of its published code.
	WriteResults(w io.Writer) error
}

// Cautious is implemented by scores that can say of themselves that they are not a result.
type Cautious interface {
	// Cautions are sentences, none of which a working model gives: see package eval/sanity.
	Cautions() []string
}

// Cautions returns what scores say of themselves.
func Cautions(s Scores) []string {
	if c, ok := s.(Cautious); ok {
		return c.Cautions()
	}
	return nil
}

// NotEmpty are the sentences that are not empty.
func NotEmpty(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// AccuracyCautions are those of n answers beside what guessing reaches, in percent.
func AccuracyCautions(value, chance float64, n int, of string) []string {
	s := sanity.Share{Name: "accuracy", Value: value, Chance: chance, N: n}
	return NotEmpty(sanity.AtChance("the accuracy", s), sanity.Few(s, of))
}

// Values returns numbers by their names.
func Values(list eval.Values) map[string]float64 {
	m := map[string]float64{}
	for _, v := range list {
		m[v.Name] = v.Value
	}
	return m
}

// ClassJSON is a table of classes in the form for programs.
type ClassJSON struct {
	PerClass []eval.ClassAccuracy `json:"per_class"`
	Names    []string             `json:"class_names"`
	// Confusion has a row for each class, in the order of class_names, with what its rows were taken for.
	Confusion [][]int32 `json:"confusion,omitempty"`
}

// NewClassJSON returns that of a table.
func NewClassJSON(t *eval.ClassTable) ClassJSON { return ClassJSON{t.Classes(), t.Names, t.Matrix()} }
