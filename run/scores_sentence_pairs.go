package run

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// sentencePairs asks a model that was fine-tuned on pairs of sentences about those of eval.split.
func (e Evaluation) sentencePairs(ctx context.Context) (Scores, error) {
	c := e.Config
	m := classifier(e.Model)
	if m == nil || !c.Has(section.SentencePairs) {
		use := TaskSentences
		if e.noWords() != nil {
			use = DefaultTask(c)
		}
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model that was fine-tuned on pairs of sentences, which model.system %q is not: use --task %s", TaskSentencePairs, c.Model.System, use)}
	}
	set, err := e.Set.files().openPairs(c)
	if err != nil {
		return nil, err
	}
	s, err := tasks.Judged{
		Model: m, Set: set, Columns: source.SentenceColumns(c.Source(), e.Tokenizer),
		Encoding: e.encoding(),
	}.Run(ctx)
	return JudgedPairs{s}, err
}

// JudgedPairs is the outcome of a model on the pairs of sentences that it was fine-tuned for.
type JudgedPairs struct{ tasks.JudgedScores }

// Task implements Scores.
func (JudgedPairs) Task() string { return TaskSentencePairs }

// Metric is the accuracy, or Spearman's correlation of scores, in percent.
func (s JudgedPairs) Metric() checkpoint.Metric {
	name, value := "accuracy", s.Accuracy
	if s.Classes == nil {
		name, value = "spearman", 100*s.Scores.Spearman
	}
	return checkpoint.Metric{Name: logPrefix(TaskSentencePairs) + name, Value: value}
}

// Values implements Scores: in percent.
func (s JudgedPairs) Values() map[string]float64 {
	if s.Classes == nil {
		return map[string]float64{"spearman": 100 * s.Scores.Spearman, "pearson": 100 * s.Scores.Pearson}
	}
	return map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority}
}

// Line implements Scores.
func (s JudgedPairs) Line() string {
	if s.Classes == nil {
		return fmt.Sprintf("%s Spearman %.2f, Pearson %.2f", s.JudgedScores.Task, 100*s.Scores.Spearman, 100*s.Scores.Pearson)
	}
	return fmt.Sprintf("%s accuracy %.2f (majority %.2f)", s.JudgedScores.Task, s.Accuracy, s.Majority)
}

// Size implements Scores.
func (s JudgedPairs) Size() string { return fmt.Sprintf("%d pairs of sentences", s.Pairs) }

// Table implements Scores.
func (s JudgedPairs) Table() string { return s.Line() + "\n" }

// JSON implements Scores.
func (s JudgedPairs) JSON(split, path string) any {
	return struct {
		Task   string             `json:"task"`
		Of     string             `json:"of"` // the task of sentence pairs
		Split  string             `json:"split"`
		Path   string             `json:"path"`
		Pairs  int                `json:"pairs"`
		Values map[string]float64 `json:"values"`
		Metric string             `json:"metric"` // by which checkpoints are kept, as in metrics.jsonl
	}{TaskSentencePairs, s.JudgedScores.Task, split, path, s.Pairs, s.Values(), s.Metric().Name}
}
