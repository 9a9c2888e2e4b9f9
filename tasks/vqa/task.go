// Package vqa answers questions about pictures.
package vqa

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task, its data.kind and its loss.
const Name = "vqa"

// Task is questions about pictures.
var Task = tasks.Task{
	Name: Name, Title: "Questions about pictures", Kind: Name, Metric: "accuracy", MetricTitle: "accuracy",
	Results: true, Alone: true, Open: tasks.OpenSamples,
	Needs:    []tasks.Need{tasks.NeedsTuned},
	Evaluate: evaluate,
	Finetune: &tasks.Finetune{Alone: true, Sets: []string{"objective.vqa.weight=1", "data.kind=vqa"}},
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	o, tokens, x := tasks.Of[Eval](s), tasks.Of[Loss](s).Tokens, s.Opened.(data.Examples)
	as := data.Answers{Tokens: tokens, Clean: data.CleanLower}
	t := Answered{Columns: s.Model.Writer.Columns(), Samples: x, Rows: s.Rows(x), Encoding: s.Encoding}
	if o.Generate {
		t.Answer = s.Generated(tasks.GenerateOptions{Beams: o.Beams, MaxTokens: tokens - 1})
	} else if err := t.choose(ctx, s, as); err != nil {
		return nil, err
	}
	scores, err := t.Run(ctx)
	what := "the patches that the words of the question look at in " + s.View.MiddleLayer() +
		" as far as that speaks for the answer"
	scores.Heat = s.TextHeat(what, scores.Answers, as, t.Rows)
	return scores, err
}

// choose has the model rank candidates.
func (t *Answered) choose(ctx context.Context, s *tasks.Setup, as data.Answers) error {
	e := tasks.Of[*Eval](s)
	candidates, err := tasks.Keep(s, "candidates", func() ([]string, error) { return e.LoadCandidates(ctx, s.Source) })
	if err != nil {
		return err
	}
	var ids [][]int32
	for _, a := range candidates {
		if tokens := as.Encode(a, s.Tokenizer()); tokens != nil {
			ids, t.Candidates = append(ids, tokens), append(t.Candidates, a)
		}
	}
	if len(ids) == 0 {
		return section.Errors{{Path: "eval.vqa.candidates", Value: e.Candidates,
			Msg: "has no answer of at least one word"}}
	}
	rank, err := s.Model.Writer.Ranker(ids, e.Top)
	t.Answer = func(ctx context.Context, b *batch.Batch) ([]string, error) {
		scores, err := rank(ctx, b)
		if err != nil {
			return nil, err
		}
		out, n := make([]string, b.Rows()), len(ids)
		for i := range out {
			best, err := eval.Likeliest(scores[i*n : (i+1)*n])
			if err != nil {
				return nil, fmt.Errorf("candidates of %s: %w", Name, err)
			}
			out[i] = t.Candidates[best]
		}
		return out, nil
	}
	return err
}
