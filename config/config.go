// Package config holds the configuration of a run: it lists the sections of the TOML file, loads it with its bases and
// overrides, checks it and documents it.
//
// Load reads a file, applies overrides and reports every problem at once:
//
//	cfg, err := config.Load("configs/quickstart.toml", []string{"train.batch_size=64"})
//
// A section of the file is the settings of a component and lies beside its code: package section says what it declares,
// and the fields of Config and of the sections in it are the list of them. Sections of the run as a whole, such as
// [train], are here. To add a section, write it and name its struct in the one above it. Comments of fields become
// docs/config.md.
package config

//go:generate go run ./gen -out ../docs/config.md

import (
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/train/optim"
	"github.com/geoalign/geoalign/train/schedule"
)

// Config is a whole run.
type Config struct {
	Run       Run                 `toml:"run"`
	Data      source.Data         `toml:"data"`
	Model     Model               `toml:"model"`
	Momentum  objectives.Momentum `toml:"momentum" when:"steps"`
	Queue     objectives.Queue    `toml:"queue" when:"steps"`
	Objective Objective           `toml:"objective" when:"steps"`
	Optimizer optim.Settings      `toml:"optimizer" when:"steps"`
	Schedule  schedule.Settings   `toml:"schedule" when:"steps"`
	Train     Train               `toml:"train" when:"steps"`
	Eval      Eval                `toml:"eval"`
	Compute   compute.Settings    `toml:"compute"`
	Parallel  Parallel            `toml:"parallel" when:"ranks"`
	Init      Init                `toml:"init"`

	// Added are sections of other modules, which Load was given.
	Added []Added `toml:"-"`

	// Ranks is the number of processes that train together, which the launcher says; 0: this one alone.
	Ranks int `toml:"-"`

	seen *section.View // of a copy that nothing changes any more
}

// Default returns the configuration of a run that says nothing: ALBEF's
// pre-training of ViT-B/16 at 256 pixels with BERT-base (6 text and 6 fusion
// layers), on the built-in scenes. The values are those of the reference code
// (configs/Pretrain.yaml and models/model_pretrain.py of salesforce/ALBEF),
// except for the batch size, which is that of one of its eight devices, and for
// the checkpoint and logging intervals, which the reference leaves open. Those of
// model.heads are the best ones of GeRA's table 1, those of objective.swav SwAV's
// and those of objective.siglip SigLIP's.
//
// The reference starts from pre-trained towers. A run from random weights
// should also set objective.itc.in_batch_weight, queue.start_steps and
// momentum.ramp_steps; Advice says so.
func Default() (c Config) {
	for _, f := range c.sections() {
		section.Default(f.pointer())
	}
	return c
}
