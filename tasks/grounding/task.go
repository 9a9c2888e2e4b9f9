// Package grounding finds what expressions name in pictures, by heat maps of pairs.
package grounding

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task and its data.kind.
const Name = "grounding"

// Task is visual grounding, of any model of images and texts with patches. Of a model of scenes the expressions are
// about scenes.
var Task = tasks.Task{
	Name: Name, Title: "Visual grounding", Kind: Name, Metric: "accuracy", MetricTitle: "accuracy", Results: true,
	Alone: true, Open: tasks.OpenSamples,
	Needs:    []tasks.Need{pairs, boxes, whole},
	Evaluate: evaluate,
	Finetune: &tasks.Finetune{Sets: []string{"objective.mlm.weight=0", "objective.itc.positives=id", "data.kind=" + Name, "data.crop_scale_min=1"}},
}

// pairs asks for a model of pairs.
func pairs(s *tasks.Setup) *tasks.MisfitError {
	if s.Model.Heat != nil && s.Texts != nil {
		return nil
	}
	m := s.Misfit("a model of images and texts")
	m.Cure += fmt.Sprintf(" for model.system %q", s.System.Name)
	return m
}

// boxes asks for data with expressions.
func boxes(s *tasks.Setup) *tasks.MisfitError {
	if s.Source.Data.Kind == Name || s.Source.Data.Kind == "scenes" {
		return nil
	}
	m := s.Misfit("pictures with expressions and boxes, which data.kind %q lacks", s.Source.Data.Kind)
	m.Cure = fmt.Sprintf("set data.kind = %q and the files of data.examples", Name)
	return m
}

// whole asks for pictures that are seen as a whole.
func whole(s *tasks.Setup) *tasks.MisfitError {
	if !s.View.Input.Crop {
		return nil
	}
	m := s.Misfit("heat maps of whole pictures, and model.image.resize is \"crop\"")
	m.Cure = "set it to \"squash\""
	return m
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	heat, o := s.Model.Heat, tasks.Of[Eval](s)
	match := o.Mode == ByMatch
	of := tasks.HeatOf{Match: match, Layer: o.Layer - 1}
	switch {
	case o.Layer == 0 && match:
		of.Layer = heat.DefaultFusion()
	case o.Layer == 0:
		of.Layer = s.View.Depth - 1
	}
	if err := heat.CheckHeat(of); err != nil {
		return nil, section.Errors{{Path: "eval.grounding", Msg: err.Error()}}
	}
	x := s.Opened.(data.Examples)
	scores, err := Grounding{
		Heat:    func(ctx context.Context, b *batch.Batch) ([]float32, error) { return heat.HeatMaps(ctx, b, of) },
		Columns: append(s.Model.Image.Columns(), s.Model.Text.Columns()...), Samples: x, Rows: s.Rows(x),
		Encoding: s.Encoding,
	}.Run(ctx)
	scores.From = of
	return scores, err
}
