package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// TestHeadsTakeEveryPart builds alignment heads with each part of the objective that reads no
// words, pixels or parts of them, on every space, and runs two steps.
func TestHeadsTakeEveryPart(t *testing.T) {
	e := newEngine(t)
	taught := func(c *config.Config) {
		c.Momentum.Enabled, c.Queue.Size, c.Objective.ITC.Weight, c.Objective.Distill.Alpha = true, 20, 1, 0.4
		c.Objective.Geodesic.Layers, c.Objective.Geodesic.Neighbours, c.Objective.Geodesic.Entries = []int{2, 4}, 2, 2
	}
	parts := map[string]func(c *config.Config){
		"inner": func(*config.Config) {},
		"l2":    func(c *config.Config) { c.Objective.ITC.Score = "l2" },
		"gssf":  func(c *config.Config) { c.Objective.ITC.Score = "gssf" },
		"blocks": func(c *config.Config) {
			c.Objective.ITC.Score, c.Objective.GSSF.Form, c.Objective.GSSF.Blocks = "gssf", "block_diag", 2
		},
		"sigmoid":  func(c *config.Config) { c.Objective.ITC.InBatchWeight, c.Objective.SigLIP.Weight = 0, 1 },
		"taught":   taught,
		"geodesic": func(c *config.Config) { taught(c); c.Objective.ITC.Score = "geodesic" },
		"sum": func(c *config.Config) {
			taught(c)
			c.Objective.ITC.Score = config.Default().Objective.ITC.Score
			c.Objective.ITC.Scores = objectives.Terms{{Kind: "geodesic", Weight: 1}, {Kind: "gssf", Weight: 0.5}}
			c.Objective.Geometric.Weight, c.Objective.SigLIP.Weight = 1, 1
		},
		"ids":  func(c *config.Config) { c.Objective.ITC.Positives = "id" },
		"deep": func(c *config.Config) { c.Model.Heads = deepGera().Model.Heads },
		"line": func(c *config.Config) { c.Model.Heads.Layers = 0 },
	}
	for _, topology := range []string{"sphere", "Ob(4,2)", "euclid"} {
		for name, change := range parts {
			cfg := geraHeads()
			cfg.Model.Head.Dim, cfg.Model.Head.Topology, cfg.Objective.ITC.InBatchWeight, cfg.Train.BatchSize = 8, topology, 1, 5
			cfg.Objective.Geometric.Weight, cfg.Objective.ITC.Score = 0, "inner" // which every space has
			change(&cfg)
			if err := cfg.Validate(); err != nil {
				t.Errorf("%s, %s: %v", topology, name, err)
				continue
			}
			h, f := buildGera(t, cfg, e)
			for step := range 2 {
				r, err := h.Forward(f, Control{Step: step, Alpha: cfg.Objective.Distill.Alpha, UseQueue: cfg.Queue.Size > 0})
				if err != nil {
					t.Fatalf("%s, %s: %v", topology, name, err)
				}
				if math.IsNaN(r.Loss) || r.Loss == 0 {
					t.Errorf("%s, %s: loss %v", topology, name, r.Loss)
				}
				check.OK(t, h.After())
			}
		}
	}
}
