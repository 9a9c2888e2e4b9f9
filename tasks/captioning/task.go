// Package captioning is captions that a model writes.
package captioning

import (
	"context"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task and of its loss.
const Name = "captioning"

// Task is captions of the images of the split.
var Task = tasks.Task{
	Name: Name, Title: "Captions", Metric: "cider", MetricTitle: "CIDEr", Unbounded: true, Results: true, Alone: true,
	Needs:    []tasks.Need{tasks.NeedsTuned},
	Evaluate: evaluate,
	Finetune: &tasks.Finetune{Alone: true, Sets: []string{"objective.captioning.weight=1", "objective.captioning.decoder=transformer"}},
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	set, err := s.Set.Rephrased()
	if err != nil {
		return nil, err
	}
	o := tasks.Of[Eval](s)
	most := o.Most(s.Source.Data.Tokens)
	t := Captioned{
		Columns: s.Model.Writer.Columns(), Set: set, Encoding: s.Encoding,
		Write: s.Generated(tasks.GenerateOptions{Beams: o.Beams, MinTokens: o.MinTokens, MaxTokens: most,
			LengthPenalty: o.LengthPenalty}),
		Nearest: Nearest{Model: s.Model.Image, Engine: s.Engine, Samples: o.Nearest},
	}
	if o.Nearest > 0 {
		if t.Nearest.Train, err = s.Train(ctx, true); err != nil {
			return nil, err
		}
	}
	scores, err := t.Run(ctx)
	what := "the patches that the words of the caption look at in " + s.View.MiddleLayer() +
		" of the decoder as far as that speaks for the caption"
	as := data.Answers{Tokens: most + 1, Clean: data.CleanNone} // with the token that begins a text
	scores.Heat = s.TextHeat(what, scores.Generated, as, set.Images())
	return scores, err
}
