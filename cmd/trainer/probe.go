package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
)

// probe runs the linear probe of a model: trained on images of the training data as they
// are, tested on the split of set.
func probe(ctx context.Context, cfg config.Config, engine *kernel.Engine, m train.System, set *data.Eval, progress func(string, int, int)) (outcome, error) {
	images, ok := m.(tasks.ImageModel)
	if !ok {
		return nil, fmt.Errorf("the probe needs a model with an image encoder: model.system %q has none", cfg.Model.System)
	}
	stream, err := source.Stream(unaugmented(cfg), source.Options{Warn: warn})
	if err != nil {
		return nil, err
	}
	s, err := tasks.Probe{
		Model: images, Train: stream, Samples: cfg.Eval.ProbeSamples, Set: set, Engine: engine, BatchSize: cfg.Eval.BatchSize,
		Decay: cfg.Eval.ProbeDecay, Neighbours: cfg.Eval.ProbeNeighbours, Workers: runtime.GOMAXPROCS(0), Progress: progress,
	}.Run(ctx)
	return probed{s}, err
}

// unaugmented is a configuration whose training images are resized and nothing else.
func unaugmented(cfg config.Config) config.Config {
	d := &cfg.Data
	d.CropScaleMin, d.Flip, d.RandAugmentOps = 1, false, 0
	d.ColorJitter, d.Grayscale, d.Blur, d.Views = 0, 0, 0, 1
	return cfg
}
