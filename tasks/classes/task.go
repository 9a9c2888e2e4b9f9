// Package classes is classification of images by a model that was fine-tuned for it.
package classes

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/multimodal"
)

// Name is the name of the task, and the title of its page.
const (
	Name  = "classification"
	title = "Classification"
)

// Task is classification of images without texts.
var Task = tasks.Task{
	Name: Name, Title: title, Metric: "top1", MetricTitle: "top-1", Results: true, Alone: true,
	Needs:    []tasks.Need{tuned},
	Evaluate: evaluate,
	Finetune: &tasks.Finetune{Tower: true},
}

// tuned asks for a model that was fine-tuned for the task.
func tuned(s *tasks.Setup) *tasks.MisfitError {
	if s.System.Tuned == Name {
		return nil
	}
	return s.Misfit("a model that was fine-tuned for it (trainer finetune --task %s), which model.system %q is not",
		Name, s.System.Name)
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	x, err := newImages(s, s.Model.Classifier.Classes())
	if err != nil {
		return nil, err
	}
	rows := s.Set.Images()
	of := multimodal.Variant{Name: Name, Title: title}
	found, err := multimodal.Classify{Of: of, Model: s.Model.Classifier, Samples: x, Rows: rows,
		Encoding: s.Encoding}.Run(ctx)
	found.Heat = s.ClassHeat("what the patches add to the logit of the class that was said", found.Predicted, rows)
	scores := Scores{Scores: found}
	if err == nil {
		scores.Top5 = x.among(found, 5)
	}
	return scores, err
}

// images are those of a split as samples, whose classes have the numbers that a model gives them.
type images struct {
	set     *data.Eval
	classes []string
	labels  []int32 // of each image
}

// newImages finds the classes of a split among those of a model by their names.
func newImages(s *tasks.Setup, classes []string) (*images, error) {
	names, ok := s.Set.Labels()
	if !ok {
		return nil, section.Errors{{Path: "data.kind", Value: s.Source.Data.Kind,
			Msg: "has no classes, which --task " + Name + " tells", Hint: `use "folder", or "scenes"`}}
	}
	of := make(map[string]int32, len(classes))
	for k, name := range classes {
		of[name] = int32(k)
	}
	number := make([]int32, len(names))
	for k, name := range names {
		if number[k], ok = of[name]; !ok {
			return nil, section.Errors{{Path: "data.root", Value: s.Source.Data.Root,
				Msg: fmt.Sprintf("has %d classes, of which the model does not know %q: it was trained on %d others",
					len(names), name, len(classes)),
				Hint: "evaluate on the classes that it was trained on, or fine-tune it for these with trainer finetune --task " + Name}}
		}
	}
	x := &images{s.Set, classes, make([]int32, s.Set.NumImages())}
	for i := range x.labels {
		if x.labels[i] = s.Set.Label(i); x.labels[i] != data.UnknownLabel {
			x.labels[i] = number[x.labels[i]]
		}
	}
	return x, nil
}

func (x *images) Len() int { return len(x.labels) }
func (x *images) Example(i int) data.Example {
	return data.Example{ID: x.set.ImageName(i), Label: x.labels[i]}
}
func (x *images) Pictures() int                              { return 1 }
func (x *images) Picture(i, _ int) (*transform.Image, error) { return x.set.Image(i) }
func (x *images) PictureName(i, _ int) string                { return x.set.ImageName(i) }
func (x *images) Labels() []string                           { return x.classes }

// among is the percentage of the images whose class is among the n best, of those that have one.
func (x *images) among(s multimodal.Scores, n int) float64 {
	found, k := 0, len(x.classes)
	for i, own := range x.labels {
		if own != data.UnknownLabel && eval.ClassRank(s.Logits[i*k:][:k], own) < n {
			found++
		}
	}
	return 100 * float64(found) / float64(max(1, len(x.labels)-s.Unknown))
}
