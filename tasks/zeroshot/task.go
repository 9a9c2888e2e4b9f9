// Package zeroshot classifies images by texts that name their classes.
package zeroshot

import (
	"context"
	"errors"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task.
const Name = "zeroshot"

// Task is zero-shot classification of what eval.zeroshot names: of stored features whatever the split.
var Task = tasks.Task{
	Name: Name, Title: "Zero-shot classification", Beside: true, Metric: "top1", MetricTitle: "top-1",
	Needs:    []tasks.Need{tasks.NeedsTexts, tasks.NeedsImages},
	OwnFiles: func(s *tasks.Setup) bool { return s.System.Stored || tasks.Of[Eval](s).Images != "" },
	Inputs: func(s *tasks.Setup) []source.Input {
		if !s.System.Images || !s.System.Texts {
			return nil
		}
		return tasks.Of[*Eval](s).Inputs(s.Source)
	},
	Open:     func(_ context.Context, s *tasks.Setup) (any, error) { return tasks.Of[*Eval](s).Folder(s.Source) },
	Ready:    ready,
	Evaluate: evaluate,
}

// Inputs is what zero-shot classification is evaluated on. Close it after use.
type Inputs struct {
	Images      data.Gallery
	Prompts     data.Gallery // of stored features; nil where they are texts
	PromptTexts []string     // of a system that reads words
	Classes     []string     // names
	ImageClass  []int32      // per image; data.UnknownLabel for one of no class
	PromptClass []int32      // per prompt
	Closers     []func() error
}

// Close closes the files.
func (x *Inputs) Close() error {
	var errs []error
	for _, c := range x.Closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// open opens images and prompts.
func open(s *tasks.Setup) (*Inputs, error) {
	z := tasks.Of[*Eval](s)
	if s.System.Stored {
		x, err := z.OpenFiles(s.Source)
		if x == nil && err == nil {
			err = section.Errors{{Path: "eval.zeroshot.image", Value: "",
				Msg:  "must name features of images for --task " + Name,
				Hint: "docs/align.md says which files it needs"}}
		}
		return x, err
	}
	set, _ := s.Opened.(*data.Eval)
	if set == nil {
		set = s.Set
	}
	return z.OpenImages(s.Source, set)
}

// ready opens images and prompts.
func ready(s *tasks.Setup) error {
	x, err := open(s)
	if err != nil {
		return err
	}
	return x.Close()
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	x, err := open(s)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	score, err := s.Model.Score()
	if err != nil {
		return nil, err
	}
	if x.Prompts == nil {
		x.Prompts = s.Listed(x.PromptTexts)
	}
	return ZeroShot{
		Image: s.Model.Image, Text: s.Model.Text, Score: score,
		AverageScores: tasks.Of[Eval](s).Average == AverageScores, Images: x.Images, Prompts: x.Prompts,
		ImageClass: x.ImageClass, PromptClass: x.PromptClass, Classes: x.Classes, Engine: s.Engine,
		Encoding: s.Encoding,
	}.Run(ctx)
}
