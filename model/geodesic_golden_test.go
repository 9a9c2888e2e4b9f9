package model

import (
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives/geodesic"
)

// loadGeomm returns the golden's ALBEF with a contrast by geodesic scores through the
// graphs of tools/goldens/geomm.py, and its batch. The queue is full and the batch enters
// it at row 6 of 8.
func loadGeomm(t testing.TB, mode string, change func(*config.Config)) (*Trainer, Batch, golden, golden) {
	_, b, g := loadGolden(t, mode)
	geo := openGolden(t, "geomm_"+mode)
	cfg := tinyConfig()
	cfg.Objective.ITC.Positives, cfg.Objective.ITC.Score = mode, "geodesic"
	cfg.Objective.Geodesic.Layers = []int{5}
	change(&cfg)
	m := build(t, cfg, "", 2)
	g.give(m)
	g.giveQueue(m, 8, 6)
	for name, x := range map[string]*geodesic.Graph{"image": m.graphs.Image, "text": m.graphs.Text} {
		copy(x.Centres, geo.floats(name+"/centres"))
		copy(x.Paths, geo.floats(name+"/paths"))
		copy(x.Reach, geo.floats(name+"/reach"))
		copy(x.Owner, geo.ints(name+"/owner"))
		x.Used = 4
	}
	m.graphs.Begun = 0
	return m, b, g, geo
}

// TestGeodesicGoldenStep compares a whole training step with PyTorch as TestGoldenStep
// does: the default gradient with pairs, and soft entry with direct positives by id and
// matching's negatives by the teacher's geodesic scores.
func TestGeodesicGoldenStep(t *testing.T) {
	for mode, change := range map[string]func(*config.Config){
		"pair": func(c *config.Config) { c.Objective.Geodesic.Gradient = "same_cluster+straight_through" },
		"id": func(c *config.Config) {
			d := &c.Objective.Geodesic
			d.Gradient, d.Entries, d.Softness, d.DirectPositives = "soft_entry", 3, 0.1, true
			c.Objective.ITM.Negatives = "geodesic"
		},
	} {
		t.Run(mode, func(t *testing.T) {
			m, b, g, geo := loadGeomm(t, mode, change)
			g.run(m, b, 0.4)
			geo.step(m)
		})
	}
}
