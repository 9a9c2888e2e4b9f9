package run

import (
	"context"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks/migration"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// tasksBeside lists the tasks that a run is evaluated on beside its own, without influence on
// which checkpoints are kept.
func tasksBeside(cfg config.Config, set *Split) (list []string) {
	if !cfg.Has(section.Stored) {
		if cfg.Has(section.ImagesAlone) || cfg.Has(section.Sentences) {
			return nil // both would read the other side; the probe of images alone is their own task
		}
		return cfg.Eval.Beside
	}
	if set.Len() > eval.PreservedNeighbours {
		list = append(list, migration.NeighboursName)
	}
	if cfg.Eval.ZeroShot.Image != "" {
		list = append(list, zeroshot.Name)
	}
	return list
}

// checkBeside opens what these tasks read and looks for the number that compares checkpoints, so that nothing is found
// missing after hours of training.
func checkBeside(ctx context.Context, cfg config.Config, set *Split) error {
	if err := checkKeptBy(cfg, set); err != nil {
		return err
	}
	for _, task := range tasksBeside(cfg, set) {
		t, err := taskOf(cfg, task)
		if err != nil {
			return err
		}
		e := Evaluation{Config: cfg, Set: set}
		setup := e.setup(t)
		if setup.Opened, err = set.open(ctx, t, setup); err == nil && t.Ready != nil {
			err = t.Ready(setup)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
