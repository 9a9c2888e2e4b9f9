package evalfiles

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/source"
)

// Candidates are the answers that a model ranks for questions: those of eval.vqa.candidates, or the commonest of the training data. They
// fail where there are none.
func Candidates(ctx context.Context, cfg config.Config, o source.Options) ([]string, error) {
	c := cfg.Eval.VQA
	if c.Candidates != "" {
		list, err := examples.LoadAnswers(source.Below(cfg.Data.Root, c.Candidates))
		return list, source.RootHint(err, cfg.Data.Root)
	}
	cfg.Eval.MaxImages = 0 // which is of the samples that are evaluated
	x, err := source.OpenExamples(ctx, cfg.Source(), "train", o)
	if err != nil {
		return nil, err
	}
	list := examples.CommonAnswers(x, c.Common)
	if len(list) == 0 {
		return nil, config.Errors{{Path: "eval.vqa.candidates", Msg: "must name a file: no question of the training data has an answer"}}
	}
	return list, nil
}
