package config

import (
	"testing"

	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/tasks/multimodal"
)

// TestDownstreamTasks: the loss of a task stands alone and has its data, and data of a task has its loss.
func TestDownstreamTasks(t *testing.T) {
	alone := func(c *Config) {
		o := &c.Objective
		o.ITC.Weight, o.ITC.InBatchWeight, o.ITM.Weight, o.MLM.Weight = 0, 0, 0, 0
		o.Entailment.Weight = 1
		c.Queue.Size, c.Eval.RerankTop = 0, 0
		c.Data.Kind, c.Data.Examples.Source = multimodal.EntailmentName, source.ExamplesOfScenes
	}
	for name, x := range map[string]struct {
		change func(c *Config)
		want   string // empty: it is valid
	}{
		"alone":            {func(*Config) {}, ""},
		"beside matching":  {func(c *Config) { c.Objective.ITM.Weight = 1 }, "objective.entailment.weight: must be 0 beside other losses"},
		"beside masks":     {func(c *Config) { c.Objective.MLM.Weight = 1 }, "objective.entailment.weight: must be 0 beside other losses"},
		"two tasks":        {func(c *Config) { c.Objective.NLVR.Weight = 1 }, "one task is trained at a time"},
		"other data":       {func(c *Config) { c.Data.Kind = "scenes" }, `data.kind: must be "entailment"`},
		"no loss":          {func(c *Config) { c.Objective.Entailment.Weight, c.Objective.ITM.Weight = 0, 1 }, "its samples are for objective.entailment.weight > 0"},
		"no fusion":        {func(c *Config) { c.Model.System, c.Model.Text.FusionLayers = "clip", 0 }, "has no fusion layers"},
		"no fusion layers": {func(c *Config) { c.Model.Text.FusionLayers = 0 }, "must be 0 without fusion layers"},
		"two pictures and a caption": {func(c *Config) {
			c.Objective.Entailment.Weight, c.Objective.NLVR.Weight, c.Objective.Captioning.Weight, c.Data.Kind = 0, 1, 1, multimodal.NLVRName
		}, "objective.nlvr.weight: must be 0 with objective.captioning.weight > 0"},
		"no files": {func(c *Config) { c.Data.Examples.Source = source.ExamplesOfFiles }, "data.examples.train_files: must name at least one file"},
	} {
		c := Default()
		alone(&c)
		x.change(&c)
		wants(t, name, c, x.want)
	}
}
