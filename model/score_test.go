package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/interact"
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

// TestHostsStartAsTheCosine: a host of GSSF with a metric has, before its first update, the losses of the plain host
// and, where features are compared, its gradients, bit for bit, and the metric has a gradient of its own.
func TestHostsStartAsTheCosine(t *testing.T) {
	for _, host := range slices.Concat(hosts, tokenHosts) {
		run := func(score, form, where string) (*Trainer, *Result) {
			cfg := tinyHost(host)
			cfg.Objective.ITC.Score, cfg.Objective.GSSF = score, objectives.GSSF{Form: form, Blocks: 2}
			if cfg.Model.Interaction.Kind != "" {
				cfg.Model.Interaction.Metric = where
			}
			m := build(t, cfg, "builtin", 2)
			return m, stepOf(t, m, &feed.Step{Batch: hostBatch(m, openGolden(t, "host_"+host))})
		}
		plain, want := run("cosine", "", interact.MetricSimilarity)
		for _, form := range []string{"diag", "block_diag", "dense"} {
			for _, where := range []string{interact.MetricSimilarity, interact.MetricAttention, interact.MetricBoth} {
				m, got := run("gssf", form, where)
				if got.Loss != want.Loss || !slices.Equal(got.Parts, want.Parts) {
					t.Errorf("%s, %s in %s: %v, the cosine has %v", host, form, where, got.Parts, want.Parts)
				}
				for _, q := range plain.params.List() {
					p, _ := m.params.Get(q.Name)
					if p == nil {
						t.Errorf("%s, %s in %s: there is no %s", host, form, where, q.Name)
					} else if got, want := m.params.Grad(p), plain.params.Grad(q); slices.Contains(tokenHosts, host) {
						near(t, host+" "+form+" "+where+" "+q.Name, got, want, 2e-6) // gradients of two products are added up
					} else if !sameBits(got, want) {
						t.Errorf("%s, %s in %s: the gradient of %s is another", host, form, where, q.Name)
					}
				}
				for _, q := range m.params.List() {
					if g := m.params.Grad(q); strings.HasPrefix(q.Name, "gssf/") && g[argMax(g)] == 0 {
						t.Errorf("%s, %s in %s: %s has no gradient", host, form, where, q.Name)
					}
				}
				if n := len(m.params.List()) - len(plain.params.List()); n < 1 {
					t.Errorf("%s, %s in %s: there is no metric", host, form, where)
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
