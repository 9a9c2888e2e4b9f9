package model

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/space"
)

// tunings are the methods of model.tuning, and all of them at once beside model.lora.
var tunings = map[string]func(m *config.Model){
	"adapter": func(m *config.Model) { m.Tuning.AdapterWidth = 3 },
	"adapter, relu, metric": func(m *config.Model) {
		m.Tuning.AdapterWidth, m.Tuning.AdapterActivation, m.Tuning.Metric = 3, "relu", "block_diag"
	},
	"bitfit":         func(m *config.Model) { m.Tuning.BitFit = true },
	"partial":        func(m *config.Model) { m.Tuning.PartialBlocks = 1 },
	"ssf":            func(m *config.Model) { m.Tuning.SSF = true },
	"lora, metric":   func(m *config.Model) { m.LoRA.Rank, m.Tuning.Metric = 2, "dense" },
	"prompts":        func(m *config.Model) { m.Tuning.PromptTokens = 2 },
	"prompts, deep":  func(m *config.Model) { m.Tuning.PromptTokens, m.Tuning.PromptDeep = 2, true },
	"all":            allTuning,
	"all but blocks": func(m *config.Model) { allTuning(m); m.Tuning.PartialBlocks = 0 },
}

func allTuning(m *config.Model) {
	m.LoRA = encoders.LoRA{Rank: 2, Alpha: 3, Layers: everyBlock}
	if (&config.Config{Model: *m}).Has(section.ImagesAlone) {
		m.LoRA.Layers = everyBlock[:1]
	}
	m.Tuning = encoders.Tuning{AdapterWidth: 3, AdapterActivation: "gelu", BitFit: true, PartialBlocks: 1, PromptTokens: 2, PromptDeep: true, SSF: true, Metric: "diag"}
}

// tunable are systems whose towers are tuned.
func tunable(t testing.TB) map[string]config.Config {
	return map[string]config.Config{
		"clip":    tinyCLIP("sphere"),
		"styles":  bothStyles("clip", "clip"),
		"siglip":  bothStyles("siglip", "siglip"),
		"classes": tinyCLIP("Multi(2,4)"),
		"albef":   tinyConfig(),
		"moco":    tinyViews(t, "moco"),
	}
}

// added says whether a parameter is one that tuning adds to a tower.
func added(name string) bool {
	return slices.ContainsFunc([]string{"/lora_", "/adapter/", "/ssf_", "/prompts"}, func(part string) bool { return strings.Contains(name, part) })
}

// trainedOf is what the definition of the methods says of a parameter of a tower of two blocks.
func trainedOf(m config.Model, name string) bool {
	_, rest, _ := strings.Cut(name, "/")
	layer, inBlock := encoders.LayerOf(name)
	front := slices.ContainsFunc([]string{"patch_embed/", "cls_token", "pos_embed", "norm_pre/", "embeddings/"}, func(p string) bool { return strings.HasPrefix(rest, p) })
	return added(name) || m.Tuning.BitFit && strings.HasSuffix(name, "/bias") || m.Tuning.PartialBlocks == 1 && !front && (!inBlock || layer > 0)
}

// TestTuningStartsAsTheBase: every method trains what it says and nothing else of a tower, what is locked has no
// gradient, moment or twin, and a fresh method but prompts has the loss of the model without it.
func TestTuningStartsAsTheBase(t *testing.T) {
	for system, plain := range tunable(t) {
		base := build(t, plain, "builtin", 2)
		want := forward(t, base, loraBatch(base), Control{Alpha: 0.4})
		loss := want.Loss
		for method, set := range tunings {
			t.Run(system+"/"+method, func(t *testing.T) {
				cfg := plain
				set(&cfg.Model)
				check.OK(t, cfg.Validate())
				m := build(t, cfg, "builtin", 2)
				got, err := m.Forward(loraBatch(m), Control{Alpha: 0.4})
				if err != nil || cfg.Model.Tuning.PromptTokens == 0 && math.Float64bits(got.Loss) != math.Float64bits(loss) {
					t.Errorf("loss %v, of the base %v (%v)", got.Loss, loss, err)
				}
				trained, new := 0, 0
				for _, q := range m.Params().List() {
					tower := strings.HasPrefix(q.Name, "image/") || strings.HasPrefix(q.Name, "text/")
					if learns := !tower || trainedOf(cfg.Model, q.Name); q.Locked == learns || q.Locked && (m.Learnable(q.Name) || q.Momentum) || tower && learns && q.Momentum != cfg.Momentum.Enabled {
						t.Errorf("%s: locked %t, learned %t, with a twin %t", q.Name, q.Locked, m.Learnable(q.Name), q.Momentum)
					}
					if !q.Locked {
						trained += q.Len()
					}
					if added(q.Name) {
						new += q.Len()
					}
				}
				if len(m.Params().Grads()) != trained || m.Params().Count() != base.Params().Count()+new {
					t.Errorf("%d values are trained, %d have gradients; %d values, %d of them new, the base has %d", trained, len(m.Params().Grads()), m.Params().Count(), new, base.Params().Count())
				}
				after := m.Footprint()
				if e, err := Estimate(cfg); err != nil || e.Parameters > after.Parameters || e.Gradients > after.Gradients || e.Moments > after.Moments || e.Momentum > after.Momentum || e.Buffers > after.Buffers {
					t.Errorf("the estimate %v is no lower limit of %v (%v)", e, after, err)
				}
			})
		}
	}
}

// spread gives what tuning adds values that show.
func spread(m *Trainer, scale float32) {
	for _, q := range m.Params().List() {
		if added(q.Name) {
			for i := range m.Params().Value(q) {
				m.Params().Value(q)[i] += scale * float32((i+len(q.Name))%7-3)
			}
		}
	}
	m.Params().CopyToMomentum()
}

// TestTuningGradients compares the gradients of what tuning adds with finite differences in the whole step.
func TestTuningGradients(t *testing.T) {
	for name, cfg := range map[string]config.Config{"clip": tinyCLIP("Multi(2,4)"), "albef": tinyConfig()} {
		allTuning(&cfg.Model)
		cfg.Objective.ITC.Temperature, cfg.Train.BatchSize = 0.3, 2 // one negative: the draw has no steps
		m := build(t, cfg, "builtin", 2)
		spread(m, 0.1)
		b := randomBatch(m, 3)
		loss := func(alpha float64) float64 {
			return forward(t, m, b, Control{Alpha: alpha}).Loss
		}
		names := []string{"image/blocks/00/attn/adapter/down/weight", "image/blocks/01/mlp/adapter/up/bias", "image/blocks/00/attn/adapter/metric", "image/blocks/01/prompts", "image/blocks/00/norm1/ssf_shift",
			"image/blocks/01/attn/qkv/ssf_scale", "text/layers/00/attention/adapter/up/weight", "text/layers/01/ffn/adapter/down/bias", "text/layers/00/ffn/intermediate/ssf_scale", "text/layers/01/prompts",
			"text/layers/00/prompts", "text/layers/00/attention/qkv/lora_metric", "text/embeddings/norm/ssf_scale", "text/layers/00/attention/qkv/bias"}
		if name == "albef" {
			names = append(names, "text/layers/02/crossattention/adapter/down/weight", "text/layers/03/crossattention/query/ssf_shift", "text/mlm/dense/weight", "text/layers/02/crossattention/kv/weight")
		}
		checkDifferences(t, m, loss, names)
	}
}

// TestTuningOwnGradients: the biases and last blocks that are trained have the gradients of the model that is trained
// whole.
func TestTuningOwnGradients(t *testing.T) {
	for _, system := range []string{"clip", "styles", "albef"} {
		cfg := tunable(t)[system]
		whole := build(t, cfg, "builtin", 2)
		step(t, whole, loraBatch(whole), Control{})
		for _, method := range []string{"bitfit", "partial"} {
			tuned := cfg
			tunings[method](&tuned.Model)
			m, compared := build(t, tuned, "builtin", 2), 0
			forward(t, m, loraBatch(m), Control{})
			for _, q := range m.Params().List() {
				from, _ := whole.Params().Get(q.Name)
				if q.Locked {
					continue
				}
				compared++
				if rel, err := relative(m.Params().Grad(q), whole.Params().Grad(from)); err != nil || rel > 1e-5 {
					t.Errorf("%s, %s: the gradient of %s differs by %.1e (%v)", system, method, q.Name, rel, err)
				}
			}
			if compared < 10 {
				t.Errorf("%s, %s: %d parameters are trained", system, method, compared)
			}
		}
	}
}

// TestTuningLearns: steps of plain descent lower the loss by every method, and what is locked keeps its bits.
func TestTuningLearns(t *testing.T) {
	for method, set := range tunings {
		t.Run(method, func(t *testing.T) {
			cfg := tinyCLIP("sphere")
			cfg.Train.BatchSize = 8
			set(&cfg.Model)
			m := build(t, cfg, "builtin", 2)
			spread(m, 0.1) // at 0 the first steps move little
			b := randomPairs(m, 1)
			locked, moved := map[string][]float32{}, 0
			for _, q := range m.Params().List() {
				if q.Locked || added(q.Name) {
					locked[q.Name] = slices.Clone(m.Params().Value(q))
				}
			}
			first := step(t, m, b, Control{}).Loss
			for range 20 {
				step(t, m, b, Control{})
			}
			if last := step(t, m, b, Control{}).Loss; last > first-0.005 {
				t.Errorf("loss %v after 20 steps, %v before", last, first)
			}
			for _, q := range m.Params().List() {
				was, ok := locked[q.Name]
				if same := sameBits(was, m.Params().Value(q)); ok && q.Locked != same {
					t.Errorf("%s: locked %t, moved %t", q.Name, q.Locked, !same)
				} else if !same && added(q.Name) {
					moved++
				}
			}
			if moved == 0 && method != "bitfit" && method != "partial" {
				t.Error("nothing that is new has moved")
			}
		})
	}
}

// TestPromptsAndLengths: with prompts, what stands behind the end of a text is read as little as without them, and
// every text reads the prompts.
func TestPromptsAndLengths(t *testing.T) {
	for name, cfg := range map[string]config.Config{"clip": tinyCLIP("sphere"), "styles": bothStyles("clip", "clip"), "mean": bothStyles("", "bert"), "classes": tinyCLIP("Multi(2,4)")} {
		cfg.Model.Tuning.PromptTokens, cfg.Model.Tuning.PromptDeep = 2, true
		if name == "mean" {
			cfg.Model.Text.Pool = "mean"
		}
		m := build(t, cfg, "builtin", 2)
		spread(m, 0.3)
		b := randomPairs(m, 1)
		rows := cfg.Train.BatchSize
		_, y := encodeTexts(t, m, b.Tokens, b.Lengths, rows)
		want := slices.Clone(y)
		// Another word behind the end of a text changes nothing.
		tokens := slices.Clone(b.Tokens)
		l, changed := cfg.Data.Tokens, 0
		for i, n := range b.Lengths {
			for k := int(n); k < l; k++ {
				tokens[i*l+k] = (tokens[i*l+k] + 3) % 7
				changed++
			}
		}
		if _, y, err := m.EncodeTexts(tokens, b.Lengths, rows); err != nil || changed == 0 || !sameBits(y, want) {
			t.Errorf("%s: words behind the end of a text change it (%v, %d of them)", name, err, changed)
		}
		// Other prompts change every text.
		spread(m, 0.3)
		_, y = encodeTexts(t, m, b.Tokens, b.Lengths, rows)
		dim := len(y) / rows
		for i := range rows {
			if sameBits(y[i*dim:][:dim], want[i*dim:][:dim]) {
				t.Errorf("%s: text %d does not read the prompts", name, i)
			}
		}
	}
}

// TestTuningLeavesOtherTowers: towers that are no transformers, and the pool of a tower, are trained as ever.
func TestTuningLeavesOtherTowers(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Model.Text.Style, cfg.Model.Text.GRU = "gru", encoders.GRU{Embedding: 5, Directions: "mean"}
	cfg.Model.LoRA = encoders.LoRA{Rank: 2, Alpha: 2}
	m := build(t, cfg, "builtin", 1)
	for _, q := range m.Params().List() {
		if strings.HasPrefix(q.Name, "text/") && (q.Locked || !m.Learnable(q.Name)) {
			t.Errorf("%s of a recurrent tower is locked", q.Name)
		}
	}
	cfg = tinyCLIP("sphere")
	cfg.Model.Text.Style, cfg.Model.Text.Pool, cfg.Model.Tuning.SSF = "bert", "gpo", true
	m = build(t, cfg, "builtin", 1)
	pooled := 0
	for _, q := range m.Params().List() {
		if strings.HasPrefix(q.Name, "text/pool/") {
			pooled++
			if q.Locked || added(q.Name) {
				t.Errorf("%s of a pool is locked or tuned", q.Name)
			}
		}
	}
	if pooled == 0 {
		t.Error("there is no pool")
	}
}

// TestTuningCounts compares the trained parameters of BERT-base with counts by hand.
func TestTuningCounts(t *testing.T) {
	const d, hidden, layers = 768, 3072, 12
	biases := 3*d + d + d + hidden + d + d // of a layer: queries, keys and values, output, norm, both of the MLP, norm
	for name, c := range map[string]struct {
		set  func(m *config.Model)
		want int
	}{
		"adapter":             {func(m *config.Model) { m.Tuning.AdapterWidth = 48 }, 2 * layers * (2*48*d + 48 + d)}, // 1,789,056: the 1.8 M of GSSF
		"adapter, diag":       {func(m *config.Model) { m.Tuning.AdapterWidth, m.Tuning.Metric = 48, "diag" }, 2 * layers * (2*48*d + 48 + d + d)},
		"adapter, block_diag": {func(m *config.Model) { m.Tuning.AdapterWidth, m.Tuning.Metric = 48, "block_diag" }, 2 * layers * (2*48*d + 48 + d + 8*d)},
		"lora":                {func(m *config.Model) { m.LoRA.Rank, m.LoRA.Layers = 8, []string{"text/layers/*/attention/qkv"} }, layers * 8 * (d + 3*d)},
		"lora, dense": {func(m *config.Model) {
			m.LoRA.Rank, m.LoRA.Layers, m.Tuning.Metric = 8, []string{"text/layers/*/attention/qkv"}, "dense"
		}, layers * (8*(d+3*d) + d*d)},
		"lora, block_diag": {func(m *config.Model) {
			m.LoRA.Rank, m.LoRA.Layers, m.Tuning.Metric, m.Tuning.MetricBlocks = 8, []string{"text/layers/*/attention/qkv"}, "block_diag", 96
		}, layers * (8*(d+3*d) + 8*d)},
		"bitfit":        {func(m *config.Model) { m.Tuning.BitFit = true }, layers*biases + d},
		"ssf":           {func(m *config.Model) { m.Tuning.SSF = true }, 2 * (layers*biases + d)},
		"prompts":       {func(m *config.Model) { m.Tuning.PromptTokens = 30 }, 30 * d},
		"prompts, deep": {func(m *config.Model) { m.Tuning.PromptTokens, m.Tuning.PromptDeep = 30, true }, 30 * d * layers},
		"partial":       {func(m *config.Model) { m.Tuning.PartialBlocks = 1 }, 4*d*d + 2*d*hidden + biases + 2*d},
	} {
		m := config.Default().Model
		m.System, m.Text.Style = "matching", "bert"
		m.Text.Layers, m.Text.FusionLayers, m.Text.Width, m.Text.Heads, m.Text.Positions = layers, 0, d, 12, 512
		c.set(&m)
		cfg := config.Default()
		cfg.Model = m
		side := pairOfTowers(cfg, Options{Vocab: 30522}, encoders.Projection{Space: space.Space{Dim: d}}).text
		b := newNet(NewParams(1, false))
		scope := tuned(m, encoders.NewScope(b.params).In(side.name), &encoders.Context{})
		side.tower.Encode(&encoders.Context{}, scope, b.towerInputs(side.tower, 2, nil), encoders.Want{Classes: true})
		trained, locked := 0, 0
		for _, q := range b.params.params.list {
			if q.Locked {
				locked += q.Len()
			} else {
				trained += q.Len()
			}
		}
		if bert := 108891648; trained != c.want || !m.Tuning.BitFit && m.Tuning.PartialBlocks == 0 && locked != bert {
			t.Errorf("%s: %d parameters are trained and %d locked, by hand %d and %d", name, trained, locked, c.want, bert)
		}
	}
}

// TestTuningRefused: blocks that do not divide the inputs of a layer, prompts without a place and a model that trains
// nothing are refused by name.
func TestTuningRefused(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Model.Image.MLP, cfg.Model.Text.MLP = 20, 28
	cfg.Model.LoRA, cfg.Model.Tuning.Metric, cfg.Model.Tuning.MetricBlocks = encoders.LoRA{Rank: 2, Alpha: 2, Layers: everyBlock}, "block_diag", 8
	check.OK(t, cfg.Validate())
	if _, err := newModel(cfg, newEngine(t)); err == nil || !strings.Contains(err.Error(), "model.tuning.metric_blocks must divide the 20 inputs of image/blocks/00/mlp/fc2 (got 8, ") {
		t.Errorf("blocks of an MLP: %v", err)
	}
	frozen := tinyCLIP("sphere")
	m := &frozen.Model
	m.System, m.Image.Freeze, m.Text.Freeze, m.Image.Width, m.Text.Width, m.Head.Dim = "matching", true, true, 16, 16, 16
	o := &frozen.Objective
	o.ITC.InBatchWeight, o.Hinge.Weight, o.Hinge.Margin, o.Hinge.Negatives = 0, 1, .2, "hardest"
	check.OK(t, frozen.Validate())
	var problems config.Errors
	if _, err := newModel(frozen, newEngine(t)); !errors.As(err, &problems) || problems[0].Path != "model.text.freeze" || !strings.Contains(err.Error(), "leaves no parameter to train") {
		t.Errorf("a model without trained parameters: %v", err)
	}
	m.Image.Freeze = false
	m.Tuning.AdapterWidth = 2
	if _, err := newModel(frozen, newEngine(t)); err != nil {
		t.Error(err)
	}
}

// TestMergedTuning: a model whose weights have taken in scales, shifts and adapters with a metric gives the loss of the
// tuned one.
func TestMergedTuning(t *testing.T) {
	for system, plain := range tunable(t) {
		for _, metric := range []string{"", "diag", "block_diag", "dense"} {
			cfg := plain
			allTuning(&cfg.Model)
			cfg.Model.Tuning.PromptTokens, cfg.Model.Tuning.AdapterWidth, cfg.Model.Tuning.Metric = 0, 0, metric
			tuned, base := build(t, cfg, "builtin", 2), build(t, plain, "builtin", 2)
			spread(tuned, 0.05)
			values := map[string][]float32{}
			for _, q := range tuned.Params().List() {
				values[q.Name] = tuned.Params().Value(q)
			}
			for _, q := range base.Params().List() {
				copy(base.Params().Value(q), values[q.Name])
			}
			for _, name := range slices.Sorted(maps.Keys(values)) {
				layer, isScale := strings.CutSuffix(name, "/ssf_scale")
				if !isScale {
					continue
				}
				value := func(name string) []float32 {
					if q, ok := base.Params().Get(layer + "/" + name); ok {
						return base.Params().Value(q)
					}
					return nil
				}
				if down := slices.Clone(values[layer+"/lora_a"]); down != nil {
					if w := values[layer+"/lora_metric"]; w != nil {
						MergeMetric(down, w, 2, max(1, len(w)/(len(down)/2)))
					}
					MergeLoRA(value("weight"), down, values[layer+"/lora_b"], 2, 1.5)
				}
				MergeSSF(value("weight"), value("bias"), values[name], values[layer+"/ssf_shift"])
			}
			base.Params().CopyToMomentum()
			want := forward(t, tuned, loraBatch(tuned), Control{})
			got, err := base.Forward(loraBatch(base), Control{})
			if err != nil || !(math.Abs(got.Loss-want.Loss) <= 5e-6*math.Abs(want.Loss)) {
				t.Errorf("%s, metric %q: merged %v, tuned %v (%v)", system, metric, got.Loss, want.Loss, err)
			}
		}
	}
}

// TestTuningRecompute: a tuned step that computes its blocks again, and one in bfloat16, do what they do untuned: the
// same bits, and nearly the loss of float32.
func TestTuningRecompute(t *testing.T) {
	for name, cfg := range map[string]config.Config{"albef": tinyConfig(), "styles": bothStyles("clip", "clip")} {
		allTuning(&cfg.Model)
		kept := build(t, cfg, "builtin", 1)
		cfg.Compute.Recompute = true
		again := build(t, cfg, "builtin", 1)
		cfg.Compute.Recompute, cfg.Compute.Precision = false, "bf16"
		half := build(t, cfg, "builtin", 1)
		for _, m := range []*Trainer{kept, again, half} {
			spread(m, 0.05)
		}
		want, got, rounded := step(t, kept, loraBatch(kept), Control{}), step(t, again, loraBatch(kept), Control{}), step(t, half, loraBatch(kept), Control{})
		if want.Loss != got.Loss || !sameBits(kept.params.Grads(), again.params.Grads()) {
			t.Errorf("%s: loss %v computed again, %v kept", name, got.Loss, want.Loss)
		}
		if !(math.Abs(rounded.Loss-want.Loss) <= 0.05*want.Loss) {
			t.Errorf("%s: loss %v in bfloat16, %v in float32", name, rounded.Loss, want.Loss)
		}
	}
}
