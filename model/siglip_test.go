package model

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// TestSigLIP compares the loss in every system of pairs with its definition over the
// features that the model gives, and the gradients of scale and bias with differences of
// that.
func TestSigLIP(t *testing.T) {
	albef := tinyConfig()
	albef.Model.Text.Dropout = 0
	for name, cfg := range map[string]config.Config{"albef": albef, "clip": tinyCLIP("sphere"), "oblique": tinyCLIP("Ob(4,2)"), "heads": tinyHeads()} {
		for _, positives := range []string{"pair", "id"} {
			t.Run(name+" "+positives, func(t *testing.T) {
				cfg.Objective.ITC.InBatchWeight, cfg.Objective.ITC.Positives = 0, positives
				cfg.Objective.SigLIP = objectives.SigLIP{Weighted: section.Weigh(0.5), Scale: 4, ScaleMax: 5, Bias: -3}
				m := build(t, cfg, "plain", 1)
				b := randomBatch(m, 3)
				r := forward(t, m, b, Control{})
				s := m.feed(b, Control{})
				_, x := check.Get2(m.Image().Encode(t.Context(), s.Batch))(t)
				_, y := check.Get2(m.Text().Encode(t.Context(), s.Batch))(t)
				ids := []int32{0, 1, 2, 3, 4}[:cfg.Train.BatchSize]
				if positives == "id" {
					ids = b.IDs
				}
				want := func(scale, bias float64) float64 { return naiveSigLIP(x, y, ids, scale, bias) }
				parts := partsOf(r)
				if loss := want(4, -3); !(math.Abs(parts["siglip"]-loss) <= 1e-5*loss) {
					t.Errorf("loss %v, want %v", parts["siglip"], loss)
				}
				if !(math.Abs(parts["siglip_scale"]-4) <= 1e-5) {
					t.Errorf("scale %v, want 4", parts["siglip_scale"])
				}
				const h = 1e-4
				for _, g := range []struct {
					name, group string
					want        float64
				}{
					{"siglip/log_scale", "temperature", (want(4*math.Exp(h), -3) - want(4*math.Exp(-h), -3)) / (2 * h)},
					{"siglip/bias", "bias", (want(4, -3+h) - want(4, -3-h)) / (2 * h)},
				} {
					q, ok := m.params.Get(g.name)
					if !ok || len(q.Shape) != 0 || q.Group != g.group {
						t.Fatalf("%s: %+v", g.name, q)
					}
					if got := float64(m.params.Grad(q)[0]); !(math.Abs(got-0.5*g.want) <= 1e-4*math.Max(1, math.Abs(g.want))) {
						t.Errorf("gradient of %s: %v, want %v", g.name, got, 0.5*g.want)
					}
				}
				for _, q := range m.params.List() {
					if name == "clip" && strings.Contains(q.Name, "logit_scale") {
						t.Errorf("%s is a parameter that nothing reads", q.Name)
					}
				}
			})
		}
	}
}

// naiveSigLIP is the definition of Zhai et al. 2023, algorithm 1, over unit rows x and y
// whose products are the scores.
func naiveSigLIP(x, y []float32, ids []int32, scale, bias float64) float64 {
	n := len(ids)
	c, sum := len(x)/n, 0.
	for i := range n {
		for j := range n {
			s := 0.
			for k := range c {
				s += float64(x[i*c+k]) * float64(y[j*c+k])
			}
			z := -1.
			if ids[i] == ids[j] {
				z = 1
			}
			sum += math.Log1p(math.Exp(-z * (scale*s + bias)))
		}
	}
	return sum / float64(n)
}

// TestSigLIPScaleIsClamped: before an update, and in what is saved after one, the scale is at most
// objective.siglip.scale_max.
func TestSigLIPScaleIsClamped(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.SigLIP = objectives.SigLIP{Weighted: section.Weigh(1), Scale: 4, ScaleMax: 5, Bias: -3}
	m := build(t, cfg, "plain", 1)
	q, _ := m.params.Get("siglip/log_scale")
	for name, pass := range map[string]func() error{"Before": func() error { return m.Before(1) }, "After": m.After} {
		m.params.Value(q)[0] = 10
		check.OK(t, pass())
		if got := math.Exp(float64(m.params.Value(q)[0])); !(math.Abs(got-5) <= 1e-5) {
			t.Errorf("%s: scale %v, want 5", name, got)
		}
	}
}

// TestSigLIPChance: with features of score 0 the loss is what the log says of chance.
func TestSigLIPChance(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.SigLIP = objectives.SigLIP{Weighted: section.Weigh(1), Scale: 4, ScaleMax: 5, Bias: -3}
	m := build(t, cfg, "plain", 1)
	n, c := cfg.Train.BatchSize, cfg.Model.Head.Dim
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	want := naiveSigLIP(make([]float32, n*c), make([]float32, n*c), ids, 4, -3)
	if p := m.Chance(); len(p) != 1 || p[0].Name != "siglip" || !(math.Abs(p[0].Value-want) <= 1e-9) {
		t.Errorf("chance %v, want %v", p, want)
	}
}

// TestSigLIPGradients: those of both towers and both heads, beside the contrast, are those of
// finite differences; see TestGradientsAgainstFiniteDifferences.
func TestSigLIPGradients(t *testing.T) {
	cfg := tinyCLIP("Multi(2,4)")
	cfg.Objective.SigLIP = objectives.SigLIP{Weighted: section.Weigh(2), Scale: 3, ScaleMax: 4, Bias: -1}
	m := buildCLIP(t, cfg)
	b := randomPairs(m, 5)
	checkDifferences(t, m, func(float64) float64 {
		res := forward(t, m, b, Control{})
		var contrast, sigmoid float64
		for _, p := range res.Parts {
			switch p.Name {
			case "itc_in_batch":
				contrast = p.Value
			case "siglip":
				sigmoid = p.Value
			}
		}
		return contrast + 2*sigmoid
	}, []string{"siglip/log_scale", "siglip/bias", "image_proj/weight", "text_proj/weight", "image/patch_embed/weight", "text/embeddings/word/weight"})
}
