package vqa

import (
	"context"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/source"
)

// LoadCandidates returns the answers that a model ranks for questions: those of eval.vqa.candidates, or the commonest
// of the training data. They fail where there are none.
func (e *Eval) LoadCandidates(ctx context.Context, in source.Setup) ([]string, error) {
	if e.Candidates != "" {
		list, err := examples.LoadAnswers(source.Below(in.Data.Root, e.Candidates))
		return list, source.RootHint(err, in.Data.Root)
	}
	in.MaxImages = 0 // which is of the samples that are evaluated
	x, err := source.OpenExamples(ctx, in, "train", source.Options{})
	if err != nil {
		return nil, err
	}
	list := examples.CommonAnswers(x, e.Common)
	if len(list) == 0 {
		return nil, section.Errors{{Path: "eval.vqa.candidates",
			Msg: "must name a file: no question of the training data has an answer"}}
	}
	return list, nil
}
