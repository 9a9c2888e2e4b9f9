package model

import (
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// TestSecondViewHasAReader: with data.views = 2 a step asks for second views where a loss
// reads what the teacher makes of images, and only there is one made.
func TestSecondViewHasAReader(t *testing.T) {
	inBatch := func(c *config.Config) {
		c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight, c.Objective.MLM.Weight, c.Objective.Geometric.Weight = 0, 1, 0, 0
	}
	for name, x := range map[string]struct {
		change func(c *config.Config)
		want   bool
	}{
		"contrast with the teacher": {func(*config.Config) {}, true},
		"contrast within the batch": {inBatch, false},
		"soft targets of words":     {func(c *config.Config) { inBatch(c); c.Objective.MLM.Weight, c.Objective.Distill.Alpha = 1, 0.4 }, true},
		"words":                     {func(c *config.Config) { inBatch(c); c.Objective.MLM.Weight, c.Objective.Distill.Alpha = 1, 0 }, false},
		"geometry of images":        {func(c *config.Config) { inBatch(c); c.Objective.Geometric.Weight = 1 }, true},
		"geometry of texts": {func(c *config.Config) {
			inBatch(c)
			c.Objective.Geometric.Weight, c.Objective.Geometric.Modalities = 1, "text"
		}, false},
		"dual encoder": {func(c *config.Config) {
			c.Model.System, c.Model.Text.FusionLayers, c.Objective.ITM.Weight, c.Objective.MLM.Weight = "clip", 0, 0, 0
		}, true},
	} {
		cfg := tinyConfig()
		cfg.Data.Views, cfg.Queue.Size = 2, 12
		cfg.Objective.Geometric.Neighbours, cfg.Objective.Geometric.Pool = 3, 2
		x.change(&cfg)
		check.OK(t, cfg.Validate())
		m := build(t, cfg, "builtin", 1)
		all := check.Get(Columns(cfg))(t)
		for what, columns := range map[string][]batch.Column{"the step": m.Columns(), "Columns": all} {
			if _, got := batch.Find(columns, batch.Views); got != x.want {
				t.Errorf("%s: %s asks for second views: %t, want %t", name, what, got, x.want)
			}
		}
	}
	cfg := tinyConfig()
	cfg.Data.Views = 2
	inBatch(&cfg)
	d, err := newDesign(cfg, Options{Losses: []objectives.Loss{&objectives.ITC{InBatchWeight: 1}}})
	if err != nil || d.image.teacher[batch.Images] != batch.Views {
		t.Errorf("a loss of the caller's may read second views: %v, %v", d.image.teacher, err)
	}
}
