// Package config holds the configuration of a run as plain structs: what a TOML
// file can say, the defaults, the overrides of the command line and the checks.
// It imports little of the project, and nothing that runs.
//
// Load reads a file, applies overrides and reports every problem at once:
//
//	cfg, err := config.Load("configs/quickstart.toml", []string{"train.batch_size=64"})
//
// A section of the file is a struct in a file of its own, model_head.go for
// [model.head], with its defaults and its checks. The comments of its fields are the
// reference in docs/config.md, and their tags say what else is to be known of a key:
//
//	fixed:"meaning"   parameters mean something else with another value (see Fixed)
//	fixed:"model"     part of the architecture
//	fixed:"run"       cannot change within a run
//	change:"harmless" changes nothing that a run computes
//	change:"silent"   harmless, and not worth a word when a run goes on with another value
//	read:"metric"     read under a condition of read.go alone, of a section all its keys
//	max:"65536"       the largest value, or of a list the largest item; every integer has one
//
// To add a section, write its file and name its struct in the one above it.
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
	Objective Objective           `toml:"objective" read:"steps"`
	Optimizer optim.Settings      `toml:"optimizer" read:"steps"`
	Schedule  schedule.Settings   `toml:"schedule" read:"steps"`
	Train     Train               `toml:"train" read:"steps"`
	Eval      Eval                `toml:"eval"`
	Compute   compute.Settings    `toml:"compute"`
	Parallel  Parallel            `toml:"parallel" read:"ranks"`
	Init      Init                `toml:"init"`

	// Added are sections of other modules, which Load was given.
	Added []Added `toml:"-"`

	// Ranks is the number of processes that train together, which the launcher says; 0: this one alone.
	Ranks int `toml:"-"`
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
func Default() Config {
	var c Config
	for _, f := range fields(&c) {
		if !f.section() {
			continue
		}
		switch s := f.value.Addr().Interface().(type) {
		case section.Section:
			s.Defaults()
		case rooted:
			s.defaults()
		}
	}
	return c
}

// rooted is a section that is checked with all of the configuration.
type rooted interface {
	defaults()                   // sets what is not zero by default
	check(k *checker, c *Config) // reports what is wrong with its keys in c, which it is part of
}
