package model

import (
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

// tinyMCSE is the model of mcse in tools/goldens/simcse.py.
func tinyMCSE() config.Config {
	cfg := tinyCLIP("sphere")
	cfg.Model.Head.Style = encoders.HeadTanh
	o := &cfg.Objective
	o.ITC.InBatchWeight = 0
	o.SimCSE = objectives.SimCSE{Weighted: section.Weigh(1), Temperature: 0.3, Head: objectives.SentenceHeadTraining, HardNegativeWeight: 1}
	o.MCSE = objectives.MCSE{Weighted: section.Weigh(0.4), Temperature: 0.2}
	return cfg
}

// TestGoldenSentences compares whole steps of SimCSE, with every head and pool, and of MCSE with PyTorch: losses to
// 1e-5, every gradient by name to 1e-4 of its largest element.
func TestGoldenSentences(t *testing.T) {
	simcse := func(sets ...string) config.Config {
		return tinySimCSE(t, append(append(sets, triplets...), "objective.simcse.weight=1")...)
	}
	for name, cfg := range map[string]config.Config{
		"simcse_training": simcse(),
		"simcse_always": simcse("objective.simcse.head=always", "model.head.dim=7", "model.text.pool=first_last", "objective.simcse.temperature=0.2",
			"objective.simcse.hard_negative_weight=2"),
		"simcse_none": simcse("objective.simcse.head=none", "model.text.pool=mean", "objective.simcse.temperature=0.25", "objective.simcse.hard_negative_weight=0.5"),
		"mcse":        tinyMCSE(),
	} {
		t.Run(name, func(t *testing.T) {
			g, m := openGolden(t, name), build(t, cfg, "builtin", 2)
			g.giveAll(m)
			g.result(m, forward(t, m, g.batch(m), Control{}))
		})
	}
}
