package config

import (
	"errors"
	"testing"

	"github.com/geoalign/geoalign/objectives"
)

// imagesOnly is a configuration of a system of images alone.
func imagesOnly(system string) Config {
	c := Default()
	c.Model.System, c.Data.Views = system, 2
	c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Objective.Distill = 0, 0, objectives.Distill{}
	c.Momentum.Enabled = system == "moco"
	return c
}

// Each row breaks a system of images alone in one way and states the one message.
func TestImagesOnly(t *testing.T) {
	for _, system := range []string{"moco", "swav"} {
		c := imagesOnly(system)
		wants(t, system, c, "")
		c.Objective.ITC.Score = "geodesic"
		wants(t, system+" with geodesics", c, "")
		c.Queue.Size = 0
		if err := c.Validate(); err == nil {
			t.Errorf("%s: geodesics without a queue pass", system)
		}
	}
	for _, row := range []struct {
		system string
		change func(c *Config)
		want   string
	}{
		{"moco", func(c *Config) { c.Data.Views = 1 }, `data.views: must be 2 (got 1); model.system "moco" compares two views of an image`},
		{"moco", func(c *Config) { c.Objective.ITM.Weight = 1 }, `objective.itm.weight: must be 0 (got 1); model.system "moco" has no fusion layers: use "albef"`},
		{"swav", func(c *Config) { c.Objective.MLM.Weight = .5 }, `objective.mlm.weight: must be 0 (got 0.5); model.system "swav" has no fusion layers: use "albef"`},
		{"swav", func(c *Config) { c.Objective.Distill.Alpha = .4 }, `objective.distill.alpha: must be 0 (got 0.4); model.system "swav" has no soft targets of a teacher`},
		{"moco", func(c *Config) { c.Objective.ITC.Positives = "id" }, `objective.itc.positives: must be "pair" (got "id"); model.system "moco" knows an image by its views alone`},
		{"moco", func(c *Config) { c.Objective.Geodesic.Weigh = .5 }, `objective.geodesic.weigh: must be 0 (got 0.5); model.system "moco" does not weigh negatives`},
		{"swav", func(c *Config) { c.Objective.ITC.InBatchWeight = 1 }, `objective.itc.in_batch_weight: must be 0 (got 1); model.system "swav" compares no pairs`},
		{"swav", func(c *Config) { c.Momentum.Enabled = true }, `momentum.enabled: must be false (got true); there is one encoder and no teacher in model.system "swav"`},
		{"moco", func(c *Config) { c.Objective.TCL.Local = true }, `objective.tcl.local: must be false (got true); model.system "moco" has no pairs of images and captions: use "albef", "clip", "matching", "heads" or "align"`},
		{"moco", func(c *Config) { c.Momentum.Rule = "dynamic" }, `momentum.rule: must be "static" (got "dynamic"); model.system "moco" has no texts to compare`},
		{"moco", func(c *Config) { c.Objective.ADCL.Weight = 0.04 }, `objective.adcl.weight: must be 0 (got 0.04); model.system "moco" has no pairs of images and captions: use "albef", "clip", "matching", "heads" or "align"`},
		{"moco", func(c *Config) { c.Objective.SigLIP.Weight = 1 }, `objective.siglip.weight: must be 0 (got 1); model.system "moco" has no pairs of images and captions: use "albef", "clip", "matching", "heads" or "align"`},
		{"moco", func(c *Config) { c.Objective.Structure.Weight = 1 }, `objective.structure.weight: must be 0 (got 1); model.system "moco" has no pairs of images and captions: use "albef", "clip", "matching", "heads" or "align"`},
		{"swav", func(c *Config) { c.Objective.Geometric.Weight = 1 }, `objective.geometric.weight: must be 0 (got 1); model.system "swav" keeps no features before the head`},
		{"moco", func(c *Config) { c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1 }, `objective.itc.weight: must be > 0 (got 0); it is the loss of model.system "moco"`},
		{"moco", func(c *Config) { c.Model.Views.Hidden = -1 }, `model.views.hidden: must be >= 0 (got -1)`},
		{"swav", func(c *Config) { c.Data.Crops.Count = 4 }, `data.crops.count: must be 0 with a vision transformer (got 4); its position table is that of one size: set model.image.style = "resnet", which takes images of any size`},
		{"swav", func(c *Config) {
			c.Data.Crops.Count, c.Model.Image.Style, c.Model.Image.ResNet.FrozenNorm = 4, "resnet", true
			c.Train.Accumulate, c.Train.AccumulateSteps = "features", 2
		}, `train.accumulate: must be "gradients" (got "features"); model.system "swav" has no pairs`},
		{"swav", func(c *Config) { c.Objective.SwAV.Prototypes = 1 }, `objective.swav.prototypes: must be >= 2 (got 1)`},
		{"swav", func(c *Config) { c.Objective.SwAV.Epsilon = 0 }, `objective.swav.epsilon: must be > 0 (got 0)`},
		{"swav", func(c *Config) { c.Objective.SwAV.Iterations = 0 }, `objective.swav.iterations: must be > 0 (got 0)`},
		{"swav", func(c *Config) { c.Objective.SwAV.FreezeSteps = -1 }, `objective.swav.freeze_steps: must be >= 0 (got -1)`},
		{"moco", func(c *Config) { c.Eval.ProbeSamples = 0 }, `eval.probe_samples: must be > 0 (got 0)`},
		{"moco", func(c *Config) { c.Eval.ProbeNeighbours = 0 }, `eval.probe_neighbours: must be > 0 (got 0)`},
		{"moco", func(c *Config) { c.Eval.ProbeDecay = -1 }, `eval.probe_decay: must be >= 0 (got -1)`},
	} {
		c := imagesOnly(row.system)
		row.change(&c)
		var list Errors
		if err := c.Validate(); !errors.As(err, &list) || list[0].Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
	}
}
