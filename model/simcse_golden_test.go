package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/objectives"
)

// tinyMCSE is the model of mcse in tools/goldens/simcse.py.
func tinyMCSE() config.Config {
	cfg := tinyCLIP("sphere")
	cfg.Model.Head.Style = encoders.HeadTanh
	o := &cfg.Objective
	o.ITC.InBatchWeight = 0
	o.SimCSE = objectives.SimCSE{Weight: 1, Temperature: 0.3, Head: objectives.SentenceHeadTraining, HardNegativeWeight: 1}
	o.MCSE = objectives.MCSE{Weight: 0.4, Temperature: 0.2}
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
			file := check.Get(safetensors.Open("testdata/" + name + ".safetensors"))(t)
			t.Cleanup(func() { file.Close() })
			g := golden{t, file}
			m := build(t, cfg, "builtin", 2)
			for _, q := range m.params.List() {
				copy(m.params.Value(q), g.floats("param/"+q.Name))
			}
			b := Batch{Tokens: g.ints("input/tokens"), Lengths: g.ints("input/lengths"), IDs: iota32(0, cfg.Train.BatchSize, 1)}
			if name == "mcse" {
				b.Images = g.floats("input/images")
			} else {
				b.Positives, b.PositiveLengths = g.ints("input/tokens2"), g.ints("input/lengths2")
				b.Negatives, b.NegativeLengths = g.ints("input/tokens3"), g.ints("input/lengths3")
			}
			res := forward(t, m, b, Control{})
			got := map[string]float64{"loss": res.Loss}
			for _, p := range res.Parts {
				got[p.Name] = p.Value
			}
			for part, v := range got {
				if want := float64(g.floats("expect/" + part)[0]); !(math.Abs(v-want) <= 1e-5*max(1, want)) {
					t.Errorf("%s is %v, PyTorch says %v", part, v, want)
				}
			}
			worst, most := "", 0.0
			for _, q := range m.params.List() {
				rel, err := relative(m.params.Grad(q), g.floats("grad/"+q.Name))
				if err != nil {
					t.Fatalf("%s: %v", q.Name, err)
				}
				if rel > most {
					most, worst = rel, q.Name
				}
			}
			if t.Logf("largest difference of a gradient: %.1e (%s)", most, worst); !(most <= 1e-4) {
				t.Errorf("gradient of %s differs by %.1e of its largest element", worst, most)
			}
		})
	}
}
