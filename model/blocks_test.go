package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// textBlocks are settings of model.text.block that together have every option on.
var textBlocks = map[string][]string{
	"modernbert": {"places=rotary", "local_theta=40.0", "window=2", "global_every=2", "gated=true", "qkv_bias=false", "output_bias=false",
		"up_bias=false", "down_bias=false", "norm_bias=false", "first_norm=false", "embed_norm=true"},
	"qwen3": {"places=rotary", "norm=rms", "qk_norm=rms", "head_width=10", "key_heads=2", "causal=true", "gated=true", "final_norm=true"},
	"gemma": {"places=rotary", "norm=rms", "order=sandwich", "qk_norm=layer", "key_heads=1", "scale=0.2", "embed_scale=3.0", "stretch=2.0", "turned=4",
		"adjacent=true", "gated=true"},
	"albert":  {"order=post", "final_norm=false", "embed_norm=true", "embed_width=10", "types=2", "shared=1"},
	"t5":      {"places=buckets", "norm=rms", "scale=1.0", "buckets=8", "farthest=5", "up_bias=false"},
	"deberta": {"places=disentangled", "order=post", "final_norm=false", "embed_norm=true", "buckets=8", "farthest=7", "relative_norm=true", "scale=0.2"},
	"jina":    {"places=alibi", "order=post", "final_norm=false", "gated=true", "up_bias=false"},
}

// TestBlockGradients: those of every parameter of a text tower of blocks are those of finite differences, and with
// products in bfloat16 they have the same direction; recomputing blocks changes none.
func TestBlockGradients(t *testing.T) {
	half := engineOf(t, kernel.Options{Threads: 2, Precision: "bf16"})
	for name, sets := range textBlocks {
		t.Run(name, func(t *testing.T) {
			all := []string{"model.text.style=block", "model.text.heads=4", "model.text.mlp=20", "model.text.pool=mean"}
			if name == "t5" {
				all = append(all, "model.text.activation=relu")
			}
			if name == "gemma" {
				all = append(all, "model.text.activation=silu")
			}
			for _, s := range sets {
				all = append(all, "model.text.block."+s)
			}
			cfg := tinyCLIP("sphere")
			cfg.Model.Text.Block.Defaults()
			cfg = check.Get(cfg.With(all...))(t)
			cfg.Train.BatchSize = 2
			m := buildCLIP(t, cfg)
			b := randomPairs(m, 3)
			var names []string
			for _, q := range m.params.List() {
				if x := m.params.Value(q); strings.HasPrefix(q.Name, "text/") {
					names = append(names, q.Name)
					for i := range x {
						x[i] += float32(0.15 * math.Sin(float64(3*i+len(names))))
					}
				}
			}
			if len(names) < 11 {
				t.Errorf("parameters %v", names)
			}
			checkDifferences(t, m, func(float64) float64 { return forward(t, m, b, Control{}).Loss }, names)
			forward(t, m, b, Control{})
			whole := append([]float32(nil), m.params.Grads()...)
			rounded := modelOn(t, cfg, half)
			copy(rounded.params.values, m.params.values)
			forward(t, rounded, b, Control{})
			y := rounded.params.Grads()
			if cosine := vector.Dot(whole, y) / float32(math.Sqrt(vector.SumSq(whole)*vector.SumSq(y))); !(cosine > 0.99) || sameBits(whole, y) {
				t.Errorf("cosine of the gradients in bfloat16 is %v", cosine)
			}
			cfg.Compute.Recompute = true
			again := buildCLIP(t, cfg)
			copy(again.params.values, m.params.values)
			forward(t, again, b, Control{})
			if !sameBits(whole, again.params.Grads()) {
				t.Error("gradients differ where blocks are computed again")
			}
		})
	}
}

// convNets are networks of convolutions that together have every kind of layer.
var convNets = map[string]encoders.ConvNet{
	"efficientnet": {Blocks: []string{"conv k3 s2 c6", "ds k3 s1 c6", "ir k5 s2 e12 c8 se3", "ir k3 s1 e10 c8", "conv k1 s1 c16"}, Activation: "silu",
		Gate: "sigmoid", Padding: "same", Eps: 1e-3},
	"clip": {Blocks: []string{"conv k3 s1 c6", "mean k2", "ra k3 s1 e4 c8", "ra k3 s2 e4 c8", "rb k3 s1 e4 c8"}, Activation: "silu", Gate: "sigmoid", Eps: 1e-3,
		PoolHeads: 2, PoolWidth: 6},
	"convnext": {Blocks: []string{"patch k2 c6", "cx k3 e12 c6", "down c16", "cx k7 e20 c16"}, Activation: "gelu", Gate: "sigmoid", Eps: 1e-6,
		FinalNorm: true, LayerScale: true},
}

// TestConvNetGradients: those of every parameter of an image tower of convolutions are those of finite differences.
func TestConvNetGradients(t *testing.T) {
	for name, net := range convNets {
		t.Run(name, func(t *testing.T) {
			cfg := tinyCLIP("sphere")
			cfg.Model.Image = encoders.ImageOptions{Style: encoders.StyleConvNet, Size: 16, ConvNet: net}
			cfg.Train.BatchSize = 3
			m := buildCLIP(t, cfg)
			b := randomPairs(m, 3)
			var names []string
			for _, q := range m.params.List() {
				if !strings.HasPrefix(q.Name, "image/") || strings.Contains(q.Name, "running_") {
					continue
				}
				names = append(names, q.Name)
				for i, x := 0, m.params.Value(q); i < len(x); i++ {
					x[i] += float32(0.15 * math.Sin(float64(3*i+len(names))))
				}
			}
			if len(names) < 20 {
				t.Errorf("parameters %v", names)
			}
			checkDifferences(t, m, func(float64) float64 { return forward(t, m, b, Control{}).Loss }, names)
		})
	}
}

// TestCoCaGradients: those of every parameter of the towers of CoCa and of a projection of two layers are those of finite
// differences.
func TestCoCaGradients(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Model.Image.Block.Defaults()
	cfg = check.Get(cfg.With("model.image.style=block", "model.image.pool=attention", "model.image.block.pool_width=6", "model.image.block.pool_heads=2",
		"model.image.block.pool_all=true", "model.image.block.pool_norm=true", "model.image.block.final_norm=false", "model.text.style=coca", "model.head.identity=text",
		fmt.Sprintf(`model.head.dense=["text 10 gelu", "text %d nobias"]`, cfg.Model.Head.Dim)))(t)
	cfg.Train.BatchSize = 3
	m := buildCLIP(t, cfg)
	b := randomPairs(m, 3)
	var names []string
	for _, q := range m.params.List() {
		names = append(names, q.Name)
		for i, x := 0, m.params.Value(q); i < len(x); i++ {
			x[i] += float32(0.15 * math.Sin(float64(3*i+len(names))))
		}
	}
	for _, name := range []string{"image/pool/probe", "image/pool/token_norm/bias", "text/embeddings/class", "text_proj/dense/01/weight"} {
		if !slices.Contains(names, name) {
			t.Errorf("no parameter %s in %v", name, names)
		}
	}
	checkDifferences(t, m, func(float64) float64 { return forward(t, m, b, Control{}).Loss }, names)
}
