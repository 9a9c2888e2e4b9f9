package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives"
)

// TestIdentityMetricStartsAsTheCosine, for a whole step: before its first
// update a model with a learned metric has the losses of the cosine, bit for bit, and the
// same gradients but for the metric's own.
func TestIdentityMetricStartsAsTheCosine(t *testing.T) {
	for _, backend := range []string{"auto", "builtin", "plain"} {
		run := func(set func(c *config.Config)) (*Trainer, *Result) {
			cfg := allOn()
			set(&cfg)
			m := build(t, cfg, backend, 2)
			r := forward(t, m, randomBatch(m, 1), Control{Alpha: 0.4, UseQueue: true})
			return m, r
		}
		cosine, want := run(func(*config.Config) {})
		for _, form := range []string{"cosine", "diag", "block_diag", "dense"} {
			m, got := run(func(c *config.Config) {
				c.Objective.ITC.Score, c.Objective.GSSF = "gssf", objectives.GSSF{Form: form, Blocks: 2}
			})
			if got.Loss != want.Loss || !slices.Equal(got.Parts, want.Parts) {
				t.Errorf("%s, %s: %v, the cosine has %v", backend, form, got.Parts, want.Parts)
			}
			for _, q := range cosine.params.List() {
				p, _ := m.params.Get(q.Name)
				if !sameBits(m.params.Grad(p), cosine.params.Grad(q)) {
					t.Errorf("%s, %s: the gradient of %s is another", backend, form, q.Name)
				}
			}
		}
	}
}

// TestLogTemperature: the scale is capped at 100 for each sphere, and a fixed one stays.
func TestLogTemperature(t *testing.T) {
	cfg := clipConfig(combinedConfig())
	cfg.Model.Head.Topology = "Multi(2,4)"
	cfg.Objective.ITC.LogTemperature, cfg.Objective.ITC.TemperatureMin = true, 0
	m := modelOn(t, cfg, newEngine(t))
	if got := m.Temperature(); !(math.Abs(got-0.07) <= 1e-6) {
		t.Errorf("the temperature starts at %v", got)
	}
	q, _ := m.params.Get(logScaleName)
	if !m.Learnable(logScaleName) {
		t.Error("the scale is not learned")
	}
	for set, want := range map[float32]float64{10: 0.04, 3: math.Exp(-3), -10: 0.5} {
		m.params.Value(q)[0] = set
		m.ClampTemperature()
		if got := m.Temperature(); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("a scale of exp(%v) becomes a temperature of %v, want %v", set, got, want)
		}
	}
	cfg.Objective.ITC.LearnTemperature = false
	m = modelOn(t, cfg, newEngine(t))
	if m.Learnable(logScaleName) {
		t.Error("a fixed scale is learned")
	}
}
