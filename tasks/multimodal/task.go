// Package multimodal predicts classes of texts with one or two pictures: visual entailment, statements about two
// pictures, and any other classes that the data names.
package multimodal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/tasks"
)

// Variant is a task of texts with pictures.
type Variant struct {
	Name, Title string
	// Group is what samples have in common whose classes are consistent when all of them are right; nil: nothing.
	Group func(e data.Example) string
	Lines bool // its file of results has a line for each sample
}

// Names of the tasks, which are those of their data.kind and their losses.
const (
	Name           = "multimodal"
	EntailmentName = "entailment"
	NLVRName       = "nlvr"
)

var (
	// Task is classes that the data names, of texts with one or two pictures.
	Task = newTask(Variant{Name: Name, Title: "Texts with pictures"})
	// Entailment is whether a picture entails a sentence, contradicts it, or neither (SNLI-VE, Xie et al. 2019).
	Entailment = newTask(Variant{Name: EntailmentName, Title: "Visual entailment"})
	// NLVR is whether a statement about two pictures is true (NLVR2, Suhr et al. 2019).
	NLVR = newTask(Variant{Name: NLVRName, Title: "Statements about two pictures", Group: examples.NLVRGroup,
		Lines: true})
)

// Assignment is pre-training for NLVR: of which of two pictures a caption is. It has no evaluation.
var Assignment = tasks.Task{Name: "assignment", Finetune: &tasks.Finetune{Alone: true, Sets: []string{
	"objective.assignment.weight=1", "objective.distill.alpha=0", "momentum.enabled=false",
}}}

// newTask is the task of a variant.
func newTask(v Variant) tasks.Task {
	return tasks.Task{
		Name: v.Name, Title: v.Title, Kind: v.Name, Metric: "accuracy", MetricTitle: "accuracy", Results: true,
		Alone: true, Open: tasks.OpenSamples,
		Needs: []tasks.Need{tasks.NeedsTuned},
		Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
			x, err := knownClasses(s.Opened.(data.Examples), s.Model.Classifier.Classes())
			if err != nil {
				return nil, err
			}
			rows := s.Rows(x)
			scores, err := Classify{Of: v, Model: s.Model.Classifier, Samples: x, Rows: rows,
				Encoding: s.Encoding}.Run(ctx)
			scores.Heat = Heat(s, scores.Predicted, rows)
			return scores, err
		},
		Finetune: &tasks.Finetune{Alone: true, Sets: []string{"objective." + v.Name + ".weight=1", "data.kind=" + v.Name}},
	}
}

// Heat draws where the words look for the classes that were predicted.
func Heat(s *tasks.Setup, predicted []int32, rows data.Gallery) *tasks.Heat {
	what := "the patches that the words look at in " + s.View.MiddleLayer() +
		" as far as that speaks for the class that was said"
	return s.ClassHeat(what, predicted, rows)
}

// knownClasses gives samples the classes of a model, nil where these are those of the task.
func knownClasses(x data.Examples, classes []string) (data.Examples, error) {
	if classes == nil {
		return x, nil
	}
	var number []int32
	for _, name := range x.Labels() {
		k := slices.Index(classes, name)
		if k < 0 {
			return nil, section.Errors{{Path: "data.examples",
				Msg: fmt.Sprintf("has the class %q, which the model does not know: it was trained on %s", name,
					strings.Join(classes, ", ")),
				Hint: "evaluate on the classes that it was trained on, or fine-tune it for these with trainer finetune --task " + Name}}
		}
		number = append(number, int32(k))
	}
	return relabelled{x, classes, number}, nil
}

// relabelled are samples whose classes have the numbers that a model gives them.
type relabelled struct {
	data.Examples
	classes []string
	number  []int32 // of each class of the samples
}

// Example implements data.Examples.
func (x relabelled) Example(i int) data.Example {
	e := x.Examples.Example(i)
	if e.Label != data.UnknownLabel {
		e.Label = x.number[e.Label]
	}
	return e
}

// Labels implements data.Examples.
func (x relabelled) Labels() []string { return x.classes }
