package model

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
)

// withLocal switches the losses over words and patches on, with margins that every pair violates.
func withLocal(cfg config.Config) config.Config {
	o := &cfg.Objective
	o.WordPatch.Weight, o.TokenImage.Weight, o.TextSwap.Weight = 0.5, 1, 2
	o.WordPatch.Temperature, o.WordPatch.ContextTemperature = 0.5, 0.25
	o.TokenImage.Margin, o.TextSwap.Margin, o.TextSwap.Images = 4, 4, true
	return cfg
}

// TestLocalLossesOfEverySystem: every system with words and patches takes the three losses, alone or beside others,
// whatever the topology of its space, and reads nothing but what they need: the parts are there and finite, and every
// parameter that is trained has a gradient.
func TestLocalLossesOfEverySystem(t *testing.T) {
	albef := tinyConfig()
	albef.Objective.ITC.Positives = "id"
	matching := tinyCLIP("sphere")
	matching.Model.System, matching.Model.Head.Dim = "matching", 16 // as wide as an image's tokens
	interacting := tinyCLIP("sphere")
	interacting.Model.Interaction.Kind = "max_ave"
	alone := tinyCLIP("sphere")
	alone.Objective.ITC.InBatchWeight = 0
	for name, cfg := range map[string]config.Config{
		"albef": albef, "matching": matching, "interaction": interacting, "alone": alone, "oblique": tinyCLIP("Ob(4,2)"), "euclid": tinyCLIP("euclid"),
	} {
		for _, attention := range []string{"local", "batch"} {
			cfg := withLocal(cfg)
			cfg.Objective.TextSwap.Attention = attention
			if err := cfg.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			m := build(t, cfg, "plain", 1)
			r, err := m.Forward(randomBatch(m, 3), Control{Alpha: 0.3})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, want := range []string{"word_patch", "token_image", "text_swap"} {
				if i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == want }); i < 0 || !finite(r.Parts[i].Value) || r.Parts[i].Value <= 0 {
					t.Errorf("%s, %s: %s is not among %v", name, attention, want, r.Parts)
				}
			}
			for _, q := range m.params.List() {
				if m.Learnable(q.Name) && !slices.ContainsFunc(m.params.Grad(q), func(v float32) bool { return v != 0 }) {
					t.Errorf("%s, %s: the gradient of %s is all zero", name, attention, q.Name)
				}
			}
		}
	}
}

// TestLocalLossesAlone: each of them asks for all that it reads.
func TestLocalLossesAlone(t *testing.T) {
	for k, name := range []string{"word_patch", "token_image", "text_swap"} {
		cfg := withLocal(tinyCLIP("sphere"))
		o := &cfg.Objective
		o.ITC.InBatchWeight = 0
		for i, w := range []*float64{&o.WordPatch.Weight, &o.TokenImage.Weight, &o.TextSwap.Weight} {
			if i != k {
				*w = 0
			}
		}
		m := buildCLIP(t, cfg)
		r, err := m.Forward(randomPairs(m, 7), Control{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(r.Parts) != 1 || r.Parts[0].Name != name || !(r.Parts[0].Value > 0) {
			t.Errorf("%s: parts %v", name, r.Parts)
		}
	}
}

// TestLocalLossesGradients: those of both towers and both heads are those of finite differences; see
// TestGradientsAgainstFiniteDifferences.
func TestLocalLossesGradients(t *testing.T) {
	for _, topology := range []string{"sphere", "euclid"} {
		cfg := withLocal(tinyCLIP(topology))
		cfg.Objective.ITC.InBatchWeight = 0
		m := buildCLIP(t, cfg)
		b := randomPairs(m, 5)
		checkDifferences(t, m, func(float64) float64 {
			return forward(t, m, b, Control{}).Loss
		}, []string{"image_proj/weight", "text_proj/weight", "image/patch_embed/weight", "text/embeddings/word/weight"})
	}
}

// TestLocalLossesWithoutWords: captions of nothing between the tokens that stand around a text give finite losses and
// gradients.
func TestLocalLossesWithoutWords(t *testing.T) {
	cfg := withLocal(tinyCLIP("sphere"))
	cfg.Objective.ITC.InBatchWeight = 0
	m := newTrainer(t, cfg, Options{Engine: newEngine(t), Vocab: tinyVocab, MaskID: 4, Begin: 1, End: 1})
	b := randomPairs(m, 6)
	for i := range b.Lengths {
		b.Lengths[i] = 2
	}
	res := forward(t, m, b, Control{})
	parts := partsOf(res)
	if want := 2 * math.Log(5); !(math.Abs(parts["word_patch"]-want) <= 1e-5) || parts["token_image"] != 0 || !finite(parts["text_swap"]) {
		t.Errorf("parts %v, want the chance of %v of word_patch and no token_image", parts, want)
	}
	for _, v := range m.params.Grads() {
		if !finite(float64(v)) {
			t.Fatalf("a gradient is %v", v)
		}
	}
}
