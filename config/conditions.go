package config

import (
	"github.com/geoalign/geoalign/config/section"
)

// condition says when something reads a key or a section; the tag read names it.
type condition struct {
	with  string // in words that follow "read with"
	holds func(c *Config) bool
}

// conditions are those of the tag. A key without one has that of the innermost section
// around it that has one, and is read always where none has. What a check refuses needs no
// condition besides, such as the weight of a loss that a system has not.
var conditions = map[string]condition{
	// Systems.
	"images": {"a model.system that reads images", func(c *Config) bool { return c.Has(section.Images) }},
	"towers": {"a model.system with towers", func(c *Config) bool { return !c.Has(section.Stored) }},
	"words":  {"a model.system with a text tower", func(c *Config) bool { return c.Has(section.Words) }},
	"started words": {"init.checkpoint and a model.system with a text tower",
		func(c *Config) bool { return c.Init.Checkpoint != "" && c.Has(section.Words) }},
	"pairs": {"a model.system of pairs", func(c *Config) bool { return c.Has(section.Captions) }},
	"scored": {"a model.system of pairs or of identities that is trained in steps",
		func(c *Config) bool {
			return (c.Has(section.Captions) || c.Has(section.Identities)) && !c.Has(section.Fitted)
		}},
	"steps": {`a model.system that is trained in steps, which "align" is not`, func(c *Config) bool { return !c.Has(section.Fitted) }},

	// Several processes.
	"ranks": {"several processes that train together", func(c *Config) bool { return c.Ranks > 1 }},
	"hard negatives of ranks": {`several processes that train together with parallel.contrast = "global", and objective.itm.weight > 0`,
		func(c *Config) bool {
			return c.Ranks > 1 && c.Parallel.Contrast == OfAllRanks && c.Objective.ITM.On()
		}},

	// Evaluation.
	"fixed decay": {"a model.system with towers and eval.probe_hold = 0", func(c *Config) bool { return !c.Has(section.Stored) && c.Eval.ProbeHold == 0 }},

	// Starts.
	"image weights": {"init.image.path", func(c *Config) bool { return c.Init.Image.Path != "" }},
	"text weights":  {"init.text.path", func(c *Config) bool { return c.Init.Text.Path != "" }},
	"image rate":    {"model.image.freeze = false", func(c *Config) bool { return !c.Model.Image.Freeze }},
	"text rate": {"model.text.freeze = false, or fusion layers, and a loss that reads texts",
		func(c *Config) bool {
			return (!c.Model.Text.Freeze || c.Model.Text.FusionLayers > 0) && !c.Objective.Captioning.On() ||
				c.Objective.Captioning.Recurs()
		}},

	// Training.
	"micro-batches": {"train.accumulate_steps > 1", func(c *Config) bool { return c.Train.AccumulateSteps > 1 }},
}
