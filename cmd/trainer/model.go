package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// openCheckpoint opens the checkpoint at path for inference, with its configuration.
func openCheckpoint(c *cobra.Command, f *runFlags, path string) (*checkpoint.Checkpoint, config.Config, error) {
	ck, err := checkpoint.Load(path)
	if err != nil {
		return nil, config.Config{}, err
	}
	if ck.Notice != "" {
		fmt.Fprintln(f.output.note(c), ck.Notice)
	}
	cfg, err := f.loadOver(c, ck)
	if err == nil {
		cfg, err = checkpointConfig(cfg, ck)
	}
	if err != nil {
		ck.Close()
		return nil, cfg, err
	}
	return ck, cfg, nil
}

// checkpointConfig returns the configuration with which the model of a checkpoint is used:
// its own with --config and --set over it, of the same architecture.
func checkpointConfig(cfg config.Config, ck *checkpoint.Checkpoint) (config.Config, error) {
	if err := towersOnly(cfg); err != nil {
		return cfg, err
	}
	return withoutTraining(cfg), sameKeys(ck, cfg, config.FixedModel)
}

// openModel loads the model of a checkpoint with its tokenizer; cfg is that of
// checkpointConfig.
func openModel(cfg config.Config, ck *checkpoint.Checkpoint, engine *kernel.Engine) (train.System, *tokenizer.Tokenizer, error) {
	tok, err := train.OpenTokenizer(ck)
	if err != nil {
		return nil, nil, err
	}
	m, err := train.NewSystem(cfg, tok.Size(), engine)
	if err != nil {
		return nil, nil, err
	}
	if err := train.LoadModel(m, ck); err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, tok, nil
}

// withoutTraining is a configuration of the same parameters that needs no memory for
// training: the smallest batch, and no queue where no graph needs one.
func withoutTraining(cfg config.Config) config.Config {
	cfg.Train.BatchSize, cfg.Queue.Size = 2, 0
	cfg.Objective.Geometric.Weight = 0 // its heads are those of the contrast
	if layers := cfg.Objective.Geodesic.Layers; cfg.Objective.UsesGraph() {
		cfg.Queue.Size = max(cfg.Train.BatchSize, layers[len(layers)-1])
	}
	return cfg
}
