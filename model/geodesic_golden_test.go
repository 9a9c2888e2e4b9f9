package model

import (
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/objectives/geodesic"
)

// loadGeomm returns the golden's ALBEF with a contrast by geodesic scores through the
// graphs of tools/goldens/geomm.py, and its batch. The queue is full and the batch enters
// it at row 6 of 8.
func loadGeomm(t testing.TB, mode string, change func(*config.Config)) (*Trainer, Batch, golden, golden) {
	_, b, g := loadGolden(t, mode)
	f := check.Get(safetensors.Open("testdata/geomm_" + mode + ".safetensors"))(t)
	t.Cleanup(func() { f.Close() })
	geo := golden{t, f}
	cfg := tinyConfig()
	cfg.Objective.ITC.Positives, cfg.Objective.ITC.Score = mode, "geodesic"
	cfg.Objective.Geodesic.Layers = []int{5}
	change(&cfg)
	m := build(t, cfg, "", 2)
	for _, q := range m.params.List() {
		copy(m.params.Value(q), g.floats("param/"+q.Name))
		if q.Momentum {
			copy(m.params.MomentumValue(q), g.floats("momentum/"+q.Name))
		}
	}
	copy(m.queue.Image, g.floats("input/image_queue"))
	copy(m.queue.Text, g.floats("input/text_queue"))
	copy(m.queue.IDs, g.ints("input/queue_ids"))
	m.queue.Filled, m.queue.Pointer = 8, 6
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
			tg := m.step
			check.Get(m.load(b, Control{Alpha: 0.4, UseQueue: true}))(t)
			copy(m.floats("noise i2t"), g.floats("input/noise_i2t"))
			copy(m.floats("noise t2i"), g.floats("input/noise_t2i"))
			check.OK(t, tg.machine.RunAll())
			compareStep(t, m, geo)
		})
	}
}
