package run

import (
	"context"

	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// startHeads starts linear heads from a map in closed form, fitted to the training pairs.
func (r *Run) startHeads(ctx context.Context) error {
	p, err := source.OpenPairs(r.cfg.Source())
	if err != nil {
		return err
	}
	defer p.Close()
	pairs, err := train.TrainingPairs(p)
	if err != nil {
		return err
	}
	took, err := model.StartHeads(ctx, r.pairs, pairs)
	if err == nil {
		r.report.Say("linear heads start from %s", took)
	}
	return err
}
