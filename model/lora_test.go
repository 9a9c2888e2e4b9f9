package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
)

// withLoRA is a configuration with adapters of rank 2 for layers.
func withLoRA(cfg config.Config, layers ...string) config.Config {
	cfg.Model.LoRA = encoders.LoRA{Rank: 2, Alpha: 3, Layers: layers}
	return cfg
}

// everyBlock are the linear layers of both towers and of fusion layers.
var everyBlock = []string{"image/blocks/*/*/*", "text/layers/*/*/*"}

// bothStyles is a dual encoder of two styles.
func bothStyles(image, text string) config.Config {
	cfg := tinyCLIP("sphere")
	cfg.Model.Image.Style, cfg.Model.Text.Style = image, text
	return cfg
}

// loraSystems are systems whose towers are adapted.
func loraSystems(t testing.TB) map[string]config.Config {
	return map[string]config.Config{
		"attention": withLoRA(tinyCLIP("sphere")),
		"clip":      withLoRA(bothStyles("clip", "clip"), everyBlock...),
		"siglip":    withLoRA(bothStyles("siglip", "siglip"), append([]string{"image/pool/*", "image/pool/mlp/*"}, everyBlock...)...),
		"patches":   withLoRA(tinyCLIP("Multi(2,4)"), "image/patch_embed", "text/layers/01/ffn/*"),
		"albef":     withLoRA(tinyConfig(), everyBlock...),
		"moco":      withLoRA(tinyViews(t, "moco"), everyBlock[0]),
	}
}

// loraBatch is a batch for a system.
func loraBatch(m *Trainer) Batch {
	if m.cfg.Has(section.ImagesAlone) {
		return viewsBatch(1)
	}
	return randomBatch(m, 1)
}

// scatter gives adapters values that show.
func scatter(m *Trainer, scale float32) {
	for _, q := range m.Params().List() {
		if strings.HasSuffix(q.Name, "/lora_b") {
			for i := range m.Params().Value(q) {
				m.Params().Value(q)[i] = scale * float32(i%7-3)
			}
		}
	}
	m.Params().CopyToMomentum()
}

// TestLoRAStartsAsTheBase: fresh adapters change no loss, towers keep their parameters, which take
// no gradient, moment or twin, and adapters are trained and have twins where there is a teacher.
func TestLoRAStartsAsTheBase(t *testing.T) {
	for name, cfg := range loraSystems(t) {
		t.Run(name, func(t *testing.T) {
			check.OK(t, cfg.Validate())
			plain := cfg
			plain.Model.LoRA = encoders.LoRA{}
			base, m := build(t, plain, "builtin", 2), build(t, cfg, "builtin", 2)
			want := forward(t, base, loraBatch(base), Control{Alpha: 0.4})
			got, err := m.Forward(loraBatch(m), Control{Alpha: 0.4})
			if err != nil || !(math.Abs(got.Loss-want.Loss) <= 1e-6*math.Abs(want.Loss)) {
				t.Errorf("loss %v, of the base %v (%v)", got.Loss, want.Loss, err)
			}
			locked, trained, adapters := 0, 0, 0
			for _, q := range m.Params().List() {
				tower := strings.HasPrefix(q.Name, "image/") || strings.HasPrefix(q.Name, "text/")
				adapter := strings.HasSuffix(q.Name, "/lora_a") || strings.HasSuffix(q.Name, "/lora_b")
				if q.Locked != (tower && !adapter) || adapter && (!m.Learnable(q.Name) || q.Momentum != cfg.Momentum.Enabled) || q.Locked && (m.Learnable(q.Name) || q.Momentum) {
					t.Errorf("%s: locked %t, learned %t, with a twin %t", q.Name, q.Locked, m.Learnable(q.Name), q.Momentum)
				}
				if q.Locked {
					locked += q.Len()
				} else {
					trained += q.Len()
				}
				if adapter {
					adapters++
				}
			}
			if adapters < 4 || len(m.Params().Grads()) != trained || locked != base.Params().Count()-(trained-countAdapters(m)) {
				t.Errorf("%d adapters, %d values locked, %d trained", adapters, locked, trained)
			}
			before, after := base.Footprint(), m.Footprint()
			if after.Gradients != 4*int64(trained) || after.Moments != 8*int64(trained) || cfg.Momentum.Enabled && after.Momentum >= before.Momentum/2 {
				t.Errorf("takes %v, %v without adapters", after, before)
			}
			if e, err := Estimate(cfg); err != nil || e.Parameters > after.Parameters || e.Gradients > after.Gradients || e.Moments > after.Moments || e.Momentum > after.Momentum || e.Buffers > after.Buffers {
				t.Errorf("the estimate %v is no lower limit of %v (%v)", e, after, err)
			}
		})
	}
}

// countAdapters returns the values of adapters.
func countAdapters(m *Trainer) (n int) {
	for _, q := range m.Params().List() {
		if strings.Contains(q.Name, "/lora_") {
			n += q.Len()
		}
	}
	return n
}

// TestLoRAMerged: a model without adapters whose weights have taken them in gives the features and
// the loss of the adapted one to 1e-6, and evaluation sees adapters without their dropout.
func TestLoRAMerged(t *testing.T) {
	for name, cfg := range loraSystems(t) {
		t.Run(name, func(t *testing.T) {
			plain := cfg
			plain.Model.LoRA = encoders.LoRA{}
			adapted, base := build(t, cfg, "builtin", 2), build(t, plain, "builtin", 2)
			fresh := forward(t, base, loraBatch(base), Control{})
			start := fresh.Loss
			scatter(adapted, 0.05)
			for _, q := range base.Params().List() {
				from, _ := adapted.Params().Get(q.Name)
				w := base.Params().Value(q)
				copy(w, adapted.Params().Value(from))
				layer, isWeight := strings.CutSuffix(q.Name, "/weight")
				down, ok := adapted.Params().Get(layer + "/lora_a")
				if !isWeight || !ok {
					continue
				}
				up, _ := adapted.Params().Get(layer + "/lora_b")
				MergeLoRA(w, adapted.Params().Value(down), adapted.Params().Value(up), 2, 1.5)
			}
			base.Params().CopyToMomentum()
			want := forward(t, base, loraBatch(base), Control{})
			got, err := adapted.Forward(loraBatch(adapted), Control{})
			if err != nil || !(math.Abs(got.Loss-want.Loss) <= 2e-6*math.Abs(want.Loss)) || math.Abs(got.Loss-start) < 1e-3 {
				t.Errorf("loss %v, merged %v, of fresh adapters %v (%v)", got.Loss, want.Loss, start, err)
			}
			if cfg.Has(section.ImagesAlone) {
				return
			}
			cfg.Model.LoRA.Dropout = 0.5
			noisy := build(t, cfg, "builtin", 2)
			copy(noisy.Params().Values(), adapted.Params().Values())
			b := loraBatch(base)
			rows := cfg.Train.BatchSize
			_, x := encodeImages(t, base, b.Images, rows)
			_, y, err := noisy.EncodeImages(b.Images, rows)
			if rel, failed := relative(y, x); err != nil || failed != nil || rel > 1e-6*5 {
				t.Errorf("features of images differ by %.1e (%v)", rel, err)
			}
			_, x = check.Get2(base.EncodeTexts(b.Tokens, b.Lengths, rows))(t)
			_, y, err = noisy.EncodeTexts(b.Tokens, b.Lengths, rows)
			if rel, failed := relative(y, x); err != nil || failed != nil || rel > 1e-6*5 {
				t.Errorf("features of texts differ by %.1e (%v)", rel, err)
			}
			if dropped, err := noisy.Forward(b, Control{}); err != nil || dropped.Loss == got.Loss {
				t.Errorf("dropout changes nothing: loss %v (%v)", dropped.Loss, err)
			}
		})
	}
}

// TestLoRAGradients compares the gradients of adapters with finite differences in the whole step of
// both systems with towers.
func TestLoRAGradients(t *testing.T) {
	for name, cfg := range map[string]config.Config{"clip": withLoRA(tinyCLIP("sphere"), everyBlock...), "albef": withLoRA(tinyConfig(), everyBlock...)} {
		cfg.Objective.ITC.Temperature, cfg.Train.BatchSize = 0.3, 2 // one negative: the draw has no steps
		m := build(t, cfg, "builtin", 2)
		scatter(m, 0.1)
		b := randomBatch(m, 3)
		loss := func(alpha float64) float64 {
			return forward(t, m, b, Control{Alpha: alpha}).Loss
		}
		names := []string{"image/blocks/00/attn/qkv/lora_a", "image/blocks/01/attn/qkv/lora_b", "image/blocks/00/mlp/fc1/lora_a", "image/blocks/01/mlp/fc2/lora_b",
			"text/layers/00/attention/qkv/lora_b", "text/layers/01/attention/qkv/lora_a", "text/layers/01/ffn/intermediate/lora_b", "text/layers/00/attention/output/lora_a"}
		if name == "albef" {
			names = append(names, "text/layers/02/crossattention/kv/lora_a", "text/layers/03/crossattention/query/lora_b")
		}
		checkDifferences(t, m, loss, names)
	}
}

// TestLoRAFrozen: a frozen tower has no adapters, and a glob that no layer matches is refused.
func TestLoRAFrozen(t *testing.T) {
	cfg := withLoRA(tinyCLIP("sphere"))
	cfg.Model.Image.Freeze = true
	m := build(t, cfg, "builtin", 1)
	for _, q := range m.Params().List() {
		if strings.HasPrefix(q.Name, "image/") && strings.Contains(q.Name, "lora") {
			t.Errorf("a frozen tower has %s", q.Name)
		}
	}
	if countAdapters(m) == 0 {
		t.Error("the other tower has no adapters")
	}
	cfg.Model.LoRA.Layers = everyBlock
	_, err := newModel(cfg, newEngine(t))
	var problems config.Errors
	if !errors.As(err, &problems) || problems[0].Path != "model.lora.layers" || problems[0].Value != "image/blocks/*/*/*" {
		t.Errorf("a glob that only a frozen tower matches: %v", err)
	}
}

// TestLoRALearns: steps of plain descent on adapters and heads lower the loss, with and without
// features of several micro-batches, and towers stay as they are.
func TestLoRALearns(t *testing.T) {
	cfg := withLoRA(tinyCLIP("sphere"))
	cfg.Train.BatchSize, cfg.Model.LoRA.Alpha = 8, 16
	m := build(t, cfg, "builtin", 2)
	b := randomPairs(m, 1)
	q, _ := m.Params().Get("text/layers/00/attention/qkv/weight")
	before := slices.Clone(m.Params().Value(q))
	first := step(t, m, b, Control{}).Loss
	for range 30 {
		step(t, m, b, Control{})
	}
	if last := step(t, m, b, Control{}).Loss; last > 0.7*first || !sameBits(before, m.Params().Value(q)) {
		t.Errorf("loss %v after 30 steps, %v before", last, first)
	}
	parts := build(t, inMicroBatches(cfg, 2), "builtin", 2)
	copy(parts.Params().Values(), m.Params().Values())
	s := m.feed(b, Control{})
	want := stepOf(t, m, s)
	got, sum := compareInParts(t, parts, microBatches(s, 2))
	if rel, err := relative(sum, m.Params().Grads()); err != nil || rel > 1e-5 || !(math.Abs(got.Loss-want.Loss) <= 1e-5*want.Loss) {
		t.Errorf("features of two micro-batches: gradients differ by %.1e, loss %v and %v (%v)", rel, got.Loss, want.Loss, err)
	}
}
