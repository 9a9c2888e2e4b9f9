package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
)

// Tasks that a model is evaluated on.
const (
	taskRetrieval = "retrieval"
	taskProbe     = "probe"
)

// evalTasks lists them.
var evalTasks = []string{taskRetrieval, taskProbe}

// defaultTask is the task that a system is evaluated on unless asked otherwise.
func defaultTask(cfg config.Config) string {
	if cfg.Model.ImagesOnly() {
		return taskProbe
	}
	return taskRetrieval
}

// outcome is what an evaluation found.
type outcome interface {
	// task names the task.
	task() string
	// metric is the number by which checkpoints are kept, larger is better.
	metric() float64
	// values are the numbers of the log by name, such as rsum.
	values() map[string]float64
	// line is the outcome in one line.
	line() string
	// size says what was evaluated on, such as 10 images, 50 texts.
	size() string
	// table is the outcome for people.
	table() string
	// report is the JSON form.
	report(split, path string) any
}

// logged returns the values of an outcome as metrics.jsonl names them.
func logged(o outcome) map[string]float64 {
	values := map[string]float64{}
	for k, v := range o.values() {
		values["eval/"+o.task()+"/"+k] = v
	}
	return values
}

// retrieval is the outcome of image-text retrieval.
type retrieval struct{ tasks.Scores }

func (r retrieval) task() string               { return taskRetrieval }
func (r retrieval) metric() float64            { return r.Final().RMean() }
func (r retrieval) values() map[string]float64 { return r.Final().Map() }
func (r retrieval) size() string               { return fmt.Sprintf("%d images, %d texts", r.Images, r.Texts) }
func (r retrieval) table() string              { return r.Table() }

func (r retrieval) line() string {
	f := r.Final()
	return fmt.Sprintf("image to text R@1 %.1f R@10 %.1f, text to image R@1 %.1f R@10 %.1f, mean %.1f", f.I2T.R1, f.I2T.R10, f.T2I.R1, f.T2I.R10, f.RMean())
}

func (r retrieval) report(split, path string) any {
	e := evaluation{Task: taskRetrieval, Split: split, Path: path, Images: r.Images, Texts: r.Texts, Score: r.Score, First: r.First.Map(), Chance: r.Chance.Map()}
	if r.Rerank != nil {
		e.Rerank = r.Rerank.Map()
	}
	return e
}

// evaluation is the JSON form of retrieval.
type evaluation struct {
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

// probed is the outcome of the linear probe.
type probed struct{ tasks.ProbeScores }

func (p probed) task() string               { return taskProbe }
func (p probed) metric() float64            { return p.Top1 }
func (p probed) values() map[string]float64 { return p.Map() }
func (p probed) table() string              { return p.Table() }

func (p probed) size() string {
	return fmt.Sprintf("%d training images, %d images, %d classes", p.Train, p.Test, p.Classes)
}

func (p probed) line() string {
	return fmt.Sprintf("linear probe top-1 %.2f, k-NN top-1 %.2f, chance %.2f", p.Top1, p.Neighbours, p.Chance)
}

func (p probed) report(split, path string) any {
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
	}{taskProbe, split, path, p.Train, p.Test, p.Classes, p.Top1, p.Neighbours, p.Chance}
}

// evaluate runs a task on a split.
func evaluate(ctx context.Context, task string, cfg config.Config, engine *kernel.Engine, m train.System, tok *tokenizer.Tokenizer, set *data.Eval, progress func(string, int, int)) (outcome, error) {
	if task == taskProbe {
		return probe(ctx, cfg, engine, m, set, progress)
	}
	towers, ok := m.(tasks.Model)
	if !ok {
		return nil, usageError{fmt.Errorf("retrieval needs a model of images and texts: model.system %q has no text tower: use --task %s", cfg.Model.System, taskProbe)}
	}
	s, err := tasks.Retrieval{
		Model: towers, Tokenizer: tok, Engine: engine, Set: set, BatchSize: cfg.Eval.BatchSize,
		RerankTop: cfg.Eval.RerankTop, Folds: cfg.Eval.Folds, Workers: runtime.GOMAXPROCS(0), Progress: progress,
	}.Run(ctx)
	return retrieval{s}, err
}

// checkTask refuses a task that there is none of; empty is that of the system.
func checkTask(task string) error {
	for _, t := range evalTasks {
		if task == t || task == "" {
			return nil
		}
	}
	return usageError{fmt.Errorf("no task %q: the tasks are %s", task, strings.Join(evalTasks, " and "))}
}
