// Package vqa answers questions about pictures.
package vqa

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task, its data.kind and its loss.
const Name = "vqa"

// Task is questions about pictures.
var Task = tasks.Task{
	Name: Name, Title: "Questions about pictures", Kind: Name, Metric: "accuracy", MetricTitle: "accuracy", Results: true, Alone: true,
	Needs:    []tasks.Need{tasks.NeedsTuned},
	Evaluate: evaluate,
	Finetune: &tasks.Finetune{Alone: true, Sets: []string{"objective.vqa.weight=1", "data.kind=vqa"}},
}

// Options are what eval.vqa and objective.vqa say.
type Options struct {
	Generate   bool // answers are generated; else candidates are ranked
	Top, Beams int
	Tokens     int // of an answer
	// Candidates are the answers that are ranked.
	Candidates func(ctx context.Context) ([]string, error)
}

// answers says how answers become tokens.
func (o Options) answers() data.Answers {
	return data.Answers{Tokens: o.Tokens, Clean: data.CleanLower}
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	o, x := tasks.Of[Options](s), s.Opened.(data.Examples)
	t := Answered{Columns: s.Model.Writer.Columns(), Samples: x, Rows: s.Rows(x), Encoding: s.Encoding}
	if o.Generate {
		t.Answer = s.Generated(tasks.GenerateOptions{Beams: o.Beams, MaxTokens: o.Tokens - 1})
	} else if err := t.choose(ctx, s, o); err != nil {
		return nil, err
	}
	scores, err := t.Run(ctx)
	what := "the patches that the words of the question look at in " + s.View.MiddleLayer() + " as far as that speaks for the answer"
	scores.Heat = s.TextHeat(what, scores.Answers, o.answers(), t.Rows)
	return scores, err
}

// ErrNoCandidates says that no candidate has a word.
var ErrNoCandidates = errors.New("has no answer of at least one word")

// choose has the model rank candidates.
func (t *Answered) choose(ctx context.Context, s *tasks.Setup, o Options) error {
	candidates, err := o.Candidates(ctx)
	if err != nil {
		return err
	}
	var ids [][]int32
	for _, a := range candidates {
		if tokens := o.answers().Encode(a, s.Tokenizer()); tokens != nil {
			ids, t.Candidates = append(ids, tokens), append(t.Candidates, a)
		}
	}
	if len(ids) == 0 {
		return ErrNoCandidates
	}
	rank, err := s.Model.Writer.Ranker(ids, o.Top)
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
