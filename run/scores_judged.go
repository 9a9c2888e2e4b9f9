package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Resulted is implemented by scores of tasks whose answers are handed in to an evaluation server.
type Resulted interface {
	// WriteResults writes the answers in the form of the task's server, or of its published code.
	WriteResults(w io.Writer) error
}

// CheckResulted refuses a task whose answers have no form of results; empty is that of the system.
func CheckResulted(cfg config.Config, task string) error {
	if task = cmp.Or(task, DefaultTask(cfg)); task == cfg.Task() || task == TaskGrounding {
		return nil
	}
	return &ArgumentError{fmt.Errorf("the task %s has no file of results: use --results with a model and the task that it was fine-tuned for", task)}
}

// WriteResults writes the answers of a task to a file.
func WriteResults(path string, s Scores) error {
	r, ok := s.(Resulted)
	if !ok {
		return fmt.Errorf("run: the task %s has no file of results", s.Task())
	}
	var b bytes.Buffer
	if err := r.WriteResults(&b); err != nil {
		return err
	}
	if err := files.Replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("%w: choose another file with --results", err)
	}
	return nil
}

// examples returns the examples of eval.split, for a model that was fine-tuned for the task.
func (e Evaluation) examples(ctx context.Context) (data.Examples, error) {
	c := e.Config
	if c.Task() != e.Task {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model that was fine-tuned for it (trainer finetune --task %s), and its data: use --task %s here", e.Task, e.Task, DefaultTask(c))}
	}
	return e.Set.files().openExamples(ctx, c)
}

// classified asks a model that was fine-tuned to tell classes of examples about those of eval.split.
func (e Evaluation) classified(ctx context.Context) (Scores, error) {
	x, err := e.examples(ctx)
	if err != nil {
		return nil, err
	}
	m := classifier(e.Model)
	if m == nil {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model with fusion layers, which model.system %q has not", e.Task, e.Config.Model.System)}
	}
	rows := source.ExampleColumns(e.Config.Source(), x, e.Tokenizer)
	s, err := tasks.Classified{Model: m, Examples: x, Gallery: rows, Encoding: e.encoding()}.Run(ctx)
	return JudgedExamples{s, e.Task, x, e.judgedHeat(s.Said, rows)}, err
}

// JudgedExamples is the outcome of a model on examples with classes.
type JudgedExamples struct {
	tasks.ClassifiedScores
	Of       string // the task
	Examples data.Examples
	Heat     *seenHeat // of its pages, nil without
}

// Task implements Scores.
func (s JudgedExamples) Task() string { return s.Of }

// Metric is the accuracy in percent.
func (s JudgedExamples) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(s.Of) + "accuracy", Value: s.Accuracy}
}

// Values implements Scores: in percent.
func (s JudgedExamples) Values() map[string]float64 {
	v := map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority}
	for _, k := range s.Kinds {
		v["accuracy/"+k.Kind] = k.Accuracy
	}
	return v
}

// Line implements Scores.
func (s JudgedExamples) Line() string {
	return fmt.Sprintf("%s accuracy %.2f (majority %.2f)", s.Of, s.Accuracy, s.Majority)
}

// ClassTable implements Classified.
func (s JudgedExamples) ClassTable() *eval.ClassTable { return s.ClassifiedScores.Table }

// Size implements Scores.
func (s JudgedExamples) Size() string { return words.Count(s.ClassifiedScores.Examples, "example") }

// JSON implements Scores.
func (s JudgedExamples) JSON(split, path string) any { return s.json(split, path, s.Values()) }

// json is JSON with other values.
func (s JudgedExamples) json(split, path string, values map[string]float64) any {
	return struct {
		Task     string             `json:"task"`
		Split    string             `json:"split"`
		Path     string             `json:"path"`
		Examples int                `json:"examples"`
		Unknown  int                `json:"unknown,omitempty"` // without a class
		Values   map[string]float64 `json:"values"`
		Kinds    []tasks.KindScore  `json:"kinds,omitempty"`
		Classes  any                `json:"classes"`
		Metric   string             `json:"metric"`
	}{s.Of, split, path, s.ClassifiedScores.Examples, s.Unknown, values, s.Kinds, s.ClassifiedScores.Table, s.Metric().Name}
}

// Table implements Scores.
func (s JudgedExamples) Table() string { return s.table(s.Line()) }

// table is Table below a line of its own.
func (s JudgedExamples) table(line string) string {
	var b strings.Builder
	b.WriteString(line + "\n")
	if s.Unknown > 0 {
		fmt.Fprintf(&b, "%s without a class are left out of it\n", words.Count(s.Unknown, "example"))
	}
	b.WriteString("\n" + s.ClassifiedScores.Table.Table())
	b.WriteString(kindTable(s.Kinds))
	return b.String()
}

// kindTable is the accuracy by what is asked, "" where examples are of no kind.
func kindTable(list []tasks.KindScore) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-20s %10s %10s\n", "kind", "examples", "accuracy")
	for _, k := range list {
		fmt.Fprintf(&b, "%-20s %10s %10.2f\n", k.Kind, words.Thousands(k.Examples), k.Accuracy)
	}
	return b.String()
}

// WriteResults implements Resulted: a list of {"id", "label"} with the names of the classes.
func (s JudgedExamples) WriteResults(w io.Writer) error {
	type answer struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
	list, names := make([]answer, len(s.Said)), s.Examples.Labels()
	for i, k := range s.Said {
		list[i] = answer{s.Examples.Example(i).ID, names[k]}
	}
	return json.NewEncoder(w).Encode(list)
}
