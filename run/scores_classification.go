package run

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// classification asks a model that was fine-tuned to tell the classes of images about those of the split.
func (e Evaluation) classification(ctx context.Context) (Scores, error) {
	c := e.Config
	m := classifier(e.Model)
	if m == nil || !c.Has(section.Classes) {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model that was fine-tuned for it (trainer finetune --task %s), which model.system %q is not: use --task %s", TaskClassification, TaskClassification, c.Model.System, DefaultTask(c))}
	}
	x, err := newClassExamples(c, e.Set.Eval, m.Classes())
	if err != nil {
		return nil, err
	}
	s, err := tasks.Classified{Model: m, Examples: x, Gallery: e.Set.Eval.Images(), Encoding: e.encoding()}.Run(ctx)
	out := ClassifiedImages{JudgedExamples: JudgedExamples{s, TaskClassification, x, e.judgedHeat(s.Said, e.Set.Eval.Images())}}
	if err == nil {
		out.Top5 = x.among(s, 5)
	}
	return out, err
}

// classExamples are the images of a split as examples, whose classes have the numbers that a model gives them.
type classExamples struct {
	set     *data.Eval
	classes []string
	labels  []int32 // of each image
}

// newClassExamples finds the classes of a split among those of a model by their names.
func newClassExamples(cfg config.Config, set *data.Eval, classes []string) (*classExamples, error) {
	names, ok := set.Labels()
	if !ok {
		return nil, config.Errors{{Path: "data.kind", Value: cfg.Data.Kind, Msg: "has no classes, which --task " + TaskClassification + " tells", Hint: `use "folder", or "scenes"`}}
	}
	of := make(map[string]int32, len(classes))
	for k, name := range classes {
		of[name] = int32(k)
	}
	number := make([]int32, len(names))
	for k, name := range names {
		if number[k], ok = of[name]; !ok {
			return nil, config.Errors{{Path: "data.root", Value: cfg.Data.Root, Msg: fmt.Sprintf("has %d classes, of which the model does not know %q: it was trained on %d others", len(names), name, len(classes)),
				Hint: "evaluate on the classes that it was trained on, or fine-tune it for these with trainer finetune --task " + TaskClassification}}
		}
	}
	x := &classExamples{set, classes, make([]int32, set.NumImages())}
	for i := range x.labels {
		if x.labels[i] = set.Label(i); x.labels[i] != data.UnknownLabel {
			x.labels[i] = number[x.labels[i]]
		}
	}
	return x, nil
}

func (x *classExamples) Len() int { return len(x.labels) }
func (x *classExamples) Example(i int) data.Example {
	return data.Example{ID: x.set.ImageName(i), Label: x.labels[i]}
}
func (x *classExamples) Pictures() int                              { return 1 }
func (x *classExamples) Picture(i, _ int) (*transform.Image, error) { return x.set.Image(i) }
func (x *classExamples) PictureName(i, _ int) string                { return x.set.ImageName(i) }
func (x *classExamples) Labels() []string                           { return x.classes }

// among is the percentage of the images whose class is among the best so many, of those that have one.
func (x *classExamples) among(s tasks.ClassifiedScores, best int) float64 {
	found, k := 0, len(x.classes)
	for i, own := range x.labels {
		if own != data.UnknownLabel && eval.ClassRank(s.Logits[i*k:][:k], own) < best {
			found++
		}
	}
	return 100 * float64(found) / float64(max(1, len(x.labels)-s.Unknown))
}

// ClassifiedImages is the outcome of a model on images with classes.
type ClassifiedImages struct {
	JudgedExamples
	Top5 float64 // percentage of the images whose class is among the best five
}

// Metric is the accuracy in percent.
func (s ClassifiedImages) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskClassification) + "top1", Value: s.Accuracy}
}

// Values implements Scores: in percent.
func (s ClassifiedImages) Values() map[string]float64 {
	return map[string]float64{"top1": s.Accuracy, "top5": s.Top5, "class_top1": s.ClassifiedScores.Table.MeanOfClasses(), "majority": s.Majority}
}

// Line implements Scores.
func (s ClassifiedImages) Line() string {
	return fmt.Sprintf("classification top-1 %.2f, top-5 %.2f, mean of classes %.2f, majority %.2f", s.Accuracy, s.Top5, s.ClassifiedScores.Table.MeanOfClasses(), s.Majority)
}

// Size implements Scores.
func (s ClassifiedImages) Size() string {
	return fmt.Sprintf("%s, %d classes", words.Count(s.ClassifiedScores.Examples, "image"), len(s.Examples.Labels()))
}

// Table implements Scores.
func (s ClassifiedImages) Table() string {
	t := s.ClassifiedScores.Table
	text := fmt.Sprintf("%-24s  %6s  %6s\n%-24s  %6.2f  %6.2f\n%-24s  %6.2f\n%-24s  %6.2f\n", "accuracy", "top-1", "top-5", "all images %", s.Accuracy, s.Top5, "mean of classes %", t.MeanOfClasses(), "commonest class %", s.Majority)
	if s.Unknown > 0 {
		text += fmt.Sprintf("%d images of no class are left out.\n", s.Unknown)
	}
	return text + "\n" + t.Table()
}

// JSON implements Scores.
func (s ClassifiedImages) JSON(split, path string) any {
	t := s.ClassifiedScores.Table
	return struct {
		Task       string               `json:"task"`
		Split      string               `json:"split"`
		Path       string               `json:"path"`
		Images     int                  `json:"images"`
		Unlabelled int                  `json:"unlabelled,omitempty"` // images of no class, left out
		Classes    int                  `json:"classes"`
		Top1       float64              `json:"top1"`
		Top5       float64              `json:"top5"`
		ClassTop1  float64              `json:"class_top1"`
		Majority   float64              `json:"majority"`
		PerClass   []eval.ClassAccuracy `json:"per_class"`
		Names      []string             `json:"class_names"`
		Confusion  [][]int32            `json:"confusion,omitempty"` // a row for each class, in the order of class_names, with what its images were taken for
	}{TaskClassification, split, path, t.All(), s.Unknown, len(t.Names), s.Accuracy, s.Top5, t.MeanOfClasses(), s.Majority, t.Classes(), t.Names, t.Matrix()}
}

// WriteResults implements Resulted: a table of images and the classes that they are taken for, as CSV.
func (s ClassifiedImages) WriteResults(w io.Writer) error {
	rows := [][]string{{"image", "class"}}
	for i, k := range s.Said {
		rows = append(rows, []string{s.Examples.PictureName(i, 0), s.Examples.Labels()[k]})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
