package run

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/evalfiles"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Classified is implemented by Scores of a task that tells classes.
type Classified interface {
	Scores
	// ClassTable says what the rows of each class were taken for.
	ClassTable() *eval.ClassTable
}

// zeroShot runs zero-shot classification on what eval.zeroshot names: of stored features whatever the split.
func (e Evaluation) zeroShot(ctx context.Context) (Scores, error) {
	z, err := e.openZeroShot()
	if err != nil {
		return nil, err
	}
	defer z.Close()
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	if z.Prompts == nil {
		z.Prompts = listedTexts{z.PromptTexts, cleaner(e.Config), textColumns(e.Config, e.Tokenizer)}
	}
	c := e.Config.Eval
	s, err := tasks.ZeroShot{
		Image: e.Model.Image(), Text: e.Model.Text(), Score: score, AverageScores: c.ZeroShot.Average == config.AverageScores,
		Images: z.Images, Prompts: z.Prompts, ImageClass: z.ImageClass, PromptClass: z.PromptClass,
		Classes: z.Classes, Engine: e.Engine, BatchSize: c.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return ZeroShot{s}, err
}

// openZeroShot opens images and prompts.
func (e Evaluation) openZeroShot() (*evalfiles.ZeroShot, error) {
	c := e.Config
	switch {
	case c.Has(section.Stored):
		z, err := evalfiles.OpenZeroShotFiles(e.Config)
		if z == nil && err == nil {
			err = config.Errors{{Path: "eval.zeroshot.image", Value: "", Msg: "must name features of images for --task " + TaskZeroShot, Hint: "docs/align.md says which files it needs"}}
		}
		return z, err
	case c.Has(section.ImagesAlone):
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model of images and texts, and model.system %q has no text tower: use --task %s", e.Task, c.Model.System, TaskProbe)}
	case c.Has(section.Sentences):
		return nil, noImages(e.Config, e.Task)
	}
	images, err := e.Set.files().openZeroShot(e.Config)
	if err != nil {
		return nil, err
	}
	if images == nil {
		images = e.Set.Eval
	}
	return evalfiles.OpenZeroShotImages(e.Config, images)
}

// ZeroShot is the outcome of zero-shot classification.
type ZeroShot struct{ tasks.ZeroShotScores }

// Task implements Scores.
func (z ZeroShot) Task() string { return TaskZeroShot }

// Metric is the accuracy of the first class.
func (z ZeroShot) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskZeroShot) + "top1", Value: z.Top1}
}

// Values implements Scores.
func (z ZeroShot) Values() map[string]float64 { return z.Map() }

// Size implements Scores.
func (z ZeroShot) Size() string {
	return fmt.Sprintf("%d images, %d classes of %s", z.Images, z.Classes, words.Count(z.Prompts, "prompt"))
}

// Line implements Scores.
func (z ZeroShot) Line() string {
	return fmt.Sprintf("zero-shot top-1 %.2f, top-5 %.2f, mean of classes %.2f, chance %.2f", z.Top1, z.Top5, z.MeanOfClasses1, z.Chance1)
}

// ClassTable implements Classified.
func (z ZeroShot) ClassTable() *eval.ClassTable { return z.PerClass }

// JSON implements Scores.
func (z ZeroShot) JSON(split, path string) any {
	return struct {
		Task       string               `json:"task"`
		Split      string               `json:"split,omitempty"` // empty: of files of its own
		Path       string               `json:"path"`
		Images     int                  `json:"images"`
		Unlabelled int                  `json:"unlabelled,omitempty"` // images of no class, left out
		Prompts    int                  `json:"prompts"`
		Classes    int                  `json:"classes"`
		Top1       float64              `json:"top1"`
		Top5       float64              `json:"top5"`
		ClassTop1  float64              `json:"class_top1"`
		Chance     float64              `json:"chance"`
		PerClass   []eval.ClassAccuracy `json:"per_class"`
		Names      []string             `json:"class_names"`
		Confusion  [][]int32            `json:"confusion,omitempty"` // a row for each class, in the order of class_names, with what its images were taken for
	}{TaskZeroShot, split, path, z.Images, z.Unlabelled, z.Prompts, z.Classes, z.Top1, z.Top5, z.MeanOfClasses1, z.Chance1,
		z.PerClass.Classes(), z.PerClass.Names, z.PerClass.Matrix()}
}
