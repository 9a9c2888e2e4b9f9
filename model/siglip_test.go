package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// siglipConfig is a dual encoder trained by the sigmoid loss alone.
func siglipConfig(topology string) config.Config {
	cfg := tinyCLIP(topology)
	cfg.Objective.ITC.InBatchWeight = 0
	cfg.Objective.SigLIP = config.SigLIP{Weight: 2, Scale: 3, ScaleMax: 4, Bias: -1}
	return cfg
}

// TestSigLIPAgainstDefinition computes the loss of algorithm 1 of Zhai et al. from the
// features of inference, with pairs told by their place and by ids, alone and beside the
// contrast, whose temperature it does not read.
func TestSigLIPAgainstDefinition(t *testing.T) {
	for name, change := range map[string]func(c *config.Config){
		"pairs":    func(*config.Config) {},
		"ids":      func(c *config.Config) { c.Objective.ITC.Positives = "id" },
		"contrast": func(c *config.Config) { c.Objective.ITC.InBatchWeight = 1 },
		"l2":       func(c *config.Config) { c.Model.Head.Topology, c.Objective.ITC.Score = "euclid", "l2" },
	} {
		cfg := siglipConfig("sphere")
		change(&cfg)
		m := buildCLIP(t, cfg)
		b := randomPairs(m, 3)
		b.IDs = []int32{4, 7, 4, 1, 7}
		res, err := m.Forward(b, Control{})
		if err != nil {
			t.Fatal(err)
		}
		_, image, err := m.EncodeImages(b.Images, 5)
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := m.EncodeTexts(b.Tokens, b.Lengths, 5)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.
		for i := range 5 {
			for j := range 5 {
				var s float64
				for k := range 8 {
					x, y := float64(image[i*8+k]), float64(text[j*8+k])
					if name == "l2" {
						s += (x - y) * (x - y)
					} else {
						s += x * y
					}
				}
				if name == "l2" {
					s = -math.Sqrt(s)
				}
				z := -1.
				if i == j || name == "ids" && b.IDs[i] == b.IDs[j] {
					z = 1
				}
				want += math.Log1p(math.Exp(-z*(3*s-1))) / 5
			}
		}
		got := map[string]float64{}
		for _, p := range res.Parts {
			got[p.Name] = p.Value
		}
		if !(math.Abs(got["siglip"]-want) <= 1e-5*want) || math.Abs(got["siglip_scale"]-3) > 1e-5 {
			t.Errorf("%s: loss %v with scale %v, want %v with 3", name, got["siglip"], got["siglip_scale"], want)
		}
		if total := 2*got["siglip"] + got["itc_in_batch"]; math.Abs(res.Loss-total) > 1e-5*total {
			t.Errorf("%s: %v in all, want %v", name, res.Loss, total)
		}
		if _, ok := m.params.Get(logScaleName); ok != (name == "contrast") {
			t.Errorf("%s: there is a temperature: %t", name, ok)
		}
	}
}

// TestSigLIPGradients, as TestGradientsAgainstFiniteDifferences.
func TestSigLIPGradients(t *testing.T) {
	m := buildCLIP(t, siglipConfig("Multi(2,4)"))
	b := randomPairs(m, 5)
	checkDifferences(t, m, func(float64) float64 {
		res, err := m.Forward(b, Control{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Loss
	}, []string{"siglip/log_scale", "siglip/bias", "image_proj/weight", "text_proj/weight", "image/patch_embed/weight", "text/embeddings/word/weight"})
}

// TestSigLIPStarts: the scale is brought back under its limit before the next update, and the
// loss of scores of 0 is known.
func TestSigLIPStarts(t *testing.T) {
	m := buildCLIP(t, siglipConfig("sphere"))
	q, ok := m.params.Get("siglip/log_scale")
	if !ok || !m.Learnable(q.Name) || !m.Learnable("siglip/bias") {
		t.Fatal("scale and bias must be learned")
	}
	for set, want := range map[float32]float64{9: 4, float32(math.Log(3.5)): 3.5, -2: math.Exp(-2)} {
		m.params.Value(q)[0] = set
		if err := m.Before(1); err != nil {
			t.Fatal(err)
		}
		if got := math.Exp(float64(m.params.Value(q)[0])); math.Abs(got-want) > 1e-5 {
			t.Errorf("a scale of %v becomes %v, want %v", math.Exp(float64(set)), got, want)
		}
	}
	want := math.Log1p(math.Exp(1)) + 4*math.Log1p(math.Exp(-1))
	if c := m.Chance(); len(c) != 1 || c[0].Name != "siglip" || math.Abs(c[0].Value-want) > 1e-12 {
		t.Errorf("chance %+v, want siglip %v", c, want)
	}
}
