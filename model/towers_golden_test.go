package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// everyLayer adapts the layers of the blocks of a side, as tools/goldens/lora.py does.
func everyLayer(side string) encoders.LoRA {
	return encoders.LoRA{Rank: 2, Alpha: 3, Layers: []string{side + "/*/*/*/*"}}
}

// everyTuning adapts, scales and shifts the layers of a side, with a metric in the paths of low rank and two prompts,
// as tools/goldens/tuning.py does.
func everyTuning(m *config.Model, side, activation, metric string, deep bool) {
	m.LoRA = everyLayer(side)
	m.Tuning = encoders.Tuning{AdapterWidth: 3, AdapterActivation: activation, SSF: true, Metric: metric, MetricBlocks: 2, PromptTokens: 2, PromptDeep: deep}
}

// towerGoldens are towers of tools/goldens/towers.py, lora.py, tuning.py and metric_towers.py as a configuration
// describes them.
var towerGoldens = map[string]func(m *config.Model){
	"clip_image":       func(m *config.Model) { m.Image.Style = "clip" },
	"siglip_image":     func(m *config.Model) { m.Image.Style = "siglip" },
	"siglip_mean":      func(m *config.Model) { m.Image.Style, m.Image.Pool = "siglip", "mean" },
	"dinov2":           func(m *config.Model) { m.Image.Style, m.Image.MLP = "dinov2", 24 },
	"dinov2_registers": func(m *config.Model) { m.Image.Style, m.Image.MLP, m.Image.Registers = "dinov2", 24, 3 },
	"dinov2_swiglu":    func(m *config.Model) { m.Image.Style, m.Image.MLP, m.Image.Activation = "dinov2", 16, "swiglu" },
	"vit_mean":         func(m *config.Model) { m.Image.Style, m.Image.Pool = "vit", "mean" },
	"vit_registers":    func(m *config.Model) { m.Image.Style, m.Image.Registers = "vit", 2 },
	"clip_text":        func(m *config.Model) { m.Text.Style, m.Text.Positions = "clip", 8 },
	"siglip_text":      func(m *config.Model) { m.Text.Style = "siglip" },
	"roberta":          func(m *config.Model) { m.Text.Style = "roberta" },
	"mpnet":            func(m *config.Model) { m.Text.Style = "mpnet" },
	"lora_clip_image":  func(m *config.Model) { m.Image.Style, m.LoRA = "clip", everyLayer("image") },
	"lora_clip_text":   func(m *config.Model) { m.Text.Style, m.Text.Positions, m.LoRA = "clip", 8, everyLayer("text") },
	"lora_roberta":     func(m *config.Model) { m.Text.Style, m.LoRA = "roberta", everyLayer("text") },
	"tuning_clip_image": func(m *config.Model) {
		m.Image.Style = "clip"
		everyTuning(m, "image", "gelu", "block_diag", true)
	},
	"tuning_clip_text": func(m *config.Model) {
		m.Text.Style, m.Text.Positions = "clip", 8
		everyTuning(m, "text", "gelu", "dense", false)
	},
	"tuning_roberta": func(m *config.Model) {
		m.Text.Style = "roberta"
		everyTuning(m, "text", "relu", "diag", true)
	},
	"tuning_adapter_roberta":     func(m *config.Model) { m.Text.Style, m.Tuning.AdapterWidth = "roberta", 3 },
	"tuning_ssf_clip_image":      func(m *config.Model) { m.Image.Style, m.Tuning.SSF = "clip", true },
	"tuning_prompt_roberta":      func(m *config.Model) { m.Text.Style, m.Tuning.PromptTokens = "roberta", 2 },
	"tuning_prompt_siglip_text":  func(m *config.Model) { m.Text.Style, m.Tuning.PromptTokens, m.Tuning.PromptDeep = "siglip", 2, true },
	"tuning_prompt_siglip_image": func(m *config.Model) { m.Image.Style, m.Tuning.PromptTokens = "siglip", 2 },
	"tuning_prompt_registers": func(m *config.Model) {
		m.Image.Style, m.Image.MLP, m.Image.Registers, m.Tuning.PromptTokens, m.Tuning.PromptDeep = "dinov2", 24, 3, 2, true
	},
	"metric_dense": func(m *config.Model) {
		m.Image.Style, m.AttentionMetric = "clip", encoders.AttentionMetric{Form: "dense", Heads: "own"}
	},
	"metric_shared": func(m *config.Model) {
		m.Text.Style, m.Text.Positions, m.AttentionMetric = "clip", 8, encoders.AttentionMetric{Form: "block_diag", Blocks: 2, Heads: "shared"}
	},
	"metric_diag": func(m *config.Model) {
		m.Text.Style, m.Text.Pool, m.AttentionMetric = "mpnet", "mean", encoders.AttentionMetric{Form: "diag", Heads: "own"}
	},
	"gru": func(m *config.Model) { m.Text.Style, m.Text.GRU.Embedding = "gru", 5 },
	"gru_concat": func(m *config.Model) {
		m.Text.Style, m.Text.GRU = "gru", encoders.GRU{Embedding: 5, Directions: "concat"}
	},
	"gru_forward": func(m *config.Model) {
		m.Text.Style, m.Text.Pool, m.Text.GRU = "gru", "mean", encoders.GRU{Embedding: 5, Directions: "forward"}
	},
	"mpnet_mean": func(m *config.Model) { m.Text.Style, m.Text.Pool = "mpnet", "mean" },
}

// TestGoldenTowers compares towers with those of transformers, timm and PyTorch: what stands for an
// image or a text and all tokens that are no padding to 1e-5, the gradient of every parameter
// to 1e-4 of its largest element, whether all tokens are read or not.
func TestGoldenTowers(t *testing.T) {
	e := newEngine(t)
	for name, set := range towerGoldens {
		for _, tokens := range []bool{true, false} {
			m := config.Default().Model
			m.System, m.Text.Dropout = "clip", 0
			m.Image.Size, m.Image.Patch, m.Image.Depth, m.Image.Width, m.Image.Heads, m.Image.MLP = 8, 4, 2, 8, 2, 20
			m.Text.Layers, m.Text.FusionLayers, m.Text.Width, m.Text.Heads, m.Text.MLP, m.Text.Positions = 2, 0, 8, 2, 20, 6
			set(&m)
			t.Run(name, func(t *testing.T) { goldenTower(t, e, name, m, tokens) })
		}
	}
}

func goldenTower(t *testing.T, e *kernel.Engine, name string, m config.Model, tokens bool) {
	const rows, vocab = 3, 24
	f := check.Get(safetensors.Open("testdata/tower_" + name + ".safetensors"))(t)
	defer f.Close()
	want := func(name string) []float32 {
		return check.Get(f.Float32(name))(t)
	}
	pad := 0
	if m.Text.Style == encoders.StyleRoBERTa || m.Text.Style == encoders.StyleMPNet {
		pad = 1
	}
	cfg := config.Default()
	cfg.Model, cfg.Data.Tokens, cfg.Momentum.Enabled = m, 6, false
	d := pairOfTowers(cfg, Options{Vocab: vocab, Pad: pad}, encoders.Projection{Space: space.Space{Dim: 8}})
	side := d.image
	if _, ok := f.Lookup("input/tokens"); ok {
		side = d.text
	}
	b := newNet(NewParams(1, false))
	in := b.towerInputs(side.tower, rows, nil)
	scope := tuned(m, encoders.NewScope(b.params).In(side.name), &encoders.Context{})
	q := side.tower.Encode(&encoders.Context{}, scope, in, encoders.Want{Tokens: tokens, Classes: true})
	read := gorgonia.NewMatrix(b.g, gorgonia.Float32, gorgonia.WithShape(4, 8), gorgonia.WithName("read"))
	loss := arith.Sum(nn.LinearGELU(q.Classes, read, nil))
	store := b.params.params
	check.OK(t, store.seal())
	var wrt gorgonia.Nodes
	for _, p := range store.List() {
		wrt = append(wrt, b.params.nodes[p.Name])
	}
	grads := check.Get(gorgonia.Grad(loss, wrt...))(t)
	outputs := append(gorgonia.Nodes{q.Classes, loss}, grads...)
	if tokens {
		outputs = append(outputs, q.Tokens)
	}
	machine := check.Get(exec.Compile(b.g, exec.Config{Engine: e, Outputs: outputs}))(t)
	for i, p := range store.List() {
		v := want("param/" + p.Name)
		if len(v) != p.Len() {
			t.Fatalf("%s has %d values, %d in the golden", p.Name, p.Len(), len(v))
		}
		check.OK(t, machine.SetInput(wrt[i], v))
	}
	inputs := map[*gorgonia.Node]any{read: want("read")}
	for column, n := range in {
		if column == batch.Images {
			inputs[n] = want("input/" + column)
			continue
		}
		v := check.Get(f.Int64("input/" + column))(t)
		ints := make([]int32, len(v))
		for i := range v {
			ints[i] = int32(v[i])
		}
		inputs[n] = ints
	}
	for n, v := range inputs {
		check.OK(t, machine.SetInput(n, v))
	}
	check.OK(t, machine.RunAll())
	compare := func(what string, n *gorgonia.Node, want []float32, counts func(row int) bool, tolerance float64) {
		got := check.Get(machine.Value(n))(t)
		if len(got.F32) != len(want) {
			t.Errorf("%s has %d values, %d in the golden", what, len(got.F32), len(want))
			return
		}
		largest, worst := 1e-2, 0.0 // smaller are gradients that are zero in exact arithmetic
		for i, w := range want {
			if counts == nil || counts(i/8) {
				largest, worst = max(largest, math.Abs(float64(w))), max(worst, math.Abs(float64(got.F32[i]-w)))
			}
		}
		if !(worst <= tolerance*largest) {
			t.Errorf("%s differs by %.1e of its largest value, %v", what, worst/largest, largest)
		}
	}
	compare("what stands for a row", q.Classes, want("expect/classes"), nil, 1e-5)
	compare("the loss", loss, want("expect/loss"), nil, 1e-5)
	if tokens {
		var seen func(row int) bool
		if lengths, ok := inputs[in[batch.Lengths]].([]int32); ok {
			seen = func(row int) bool { return row%6 < int(lengths[row/6]) }
		}
		compare("tokens", q.Tokens, want("expect/tokens"), seen, 1e-5)
	}
	for i, p := range store.List() {
		compare("the gradient of "+p.Name, grads[i], want("grad/"+p.Name), nil, 1e-4)
	}
	if n := len(f.Tensors()); n != 2*len(wrt)+len(in)+4 {
		t.Errorf("%d tensors for %d parameters: the golden has others", n, len(wrt))
	}
}
