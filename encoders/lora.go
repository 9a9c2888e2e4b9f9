package encoders

import (
	"path"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// LoRA is low-rank adaptation (Hu et al. 2021, section 4.1): a linear layer with parameters that
// stay as they are gets an adapter of two matrices that are trained,
//
//	y = x W^T + b + alpha/r dropout(x) A^T B^T
//
// with the parameters lora_a (r, in), which starts as PyTorch's default of a linear layer, and
// lora_b (out, r), which starts at 0: a fresh adapter changes nothing. A joint projection to
// queries, keys and values is one layer and has one adapter. With a metric M of Tuning, lora_metric,
// A reads dropout(x) M.
type LoRA struct {
	// rank of an adapter; transformers and fusion layers keep their parameters and adapters, heads and losses are
	// trained; 0: no adapters
	Rank int `toml:"rank" fixed:"model" max:"4096"`
	// an adapter adds alpha/rank times its product
	Alpha float64 `toml:"alpha" when:"rank>0" fixed:"model" max:"1000000"`
	// of the input of an adapter
	Dropout float64 `toml:"dropout" when:"rank>0"`
	// layers with an adapter, as globs of the names of their weights without /weight, such as "text/layers/*/ffn/*"
	// (trainer inspect lists the names); empty: those of attention
	Layers []string `toml:"layers" when:"rank>0" fixed:"model"`
}

// attentionLayers are the linear layers of attention in towers and fusion layers.
var attentionLayers = []string{"image/blocks/*/attn/*", "text/layers/*/attention/*", "text/layers/*/crossattention/*"}

// Defaults implements section.Defaulter.
func (l *LoRA) Defaults() { *l = LoRA{Alpha: 16} }

// Gives implements section.Giver.
func (l *LoRA) Gives() (list []section.Fact) {
	if l.Rank > 0 {
		list = append(list, section.Adapters, section.LowRank, section.Tuned, section.Foldable)
		if l.Dropout > 0 {
			list = append(list, section.TowerDropout)
		}
	}
	return list
}

// Check implements section.Checked.
func (l *LoRA) Check(k *section.Checker) {
	k.NotNegative("rank")
	k.Positive("alpha")
	k.BelowOne("dropout")
	for _, glob := range l.Layers {
		_, err := path.Match(glob, "")
		k.Require("layers", err == nil && glob != "", "must be globs of names", "such as \"text/layers/*/attention/*\"")
	}
	if k.Has(section.Adapters) && len(tunedTowers(k)) == 0 {
		k.Training("rank", false, "must be 0 without a transformer that is not frozen: nothing has adapters", thaw(k))
	}
}

// Adapts says whether a layer has an adapter, by the name of its weight without /weight.
func (l LoRA) Adapts(layer string) bool {
	globs := l.Layers
	if len(globs) == 0 {
		globs = attentionLayers
	}
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, _ := path.Match(g, layer)
		return ok
	})
}

// Names of the parameters of an adapter, below that of its layer.
const (
	LoRADown   = "lora_a"
	LoRAUp     = "lora_b"
	LoRAMetric = "lora_metric"
)

// Scale is what the product of an adapter's matrices is multiplied with, alpha/r.
func (l LoRA) Scale() float64 { return l.Alpha / float64(l.Rank) }

// adapts says whether the linear layer s has an adapter.
func (s Scope) adapts() bool {
	return s.tuned != nil && s.tuned.Rank > 0 && s.tuned.Adapts(s.layer())
}

// adapted returns the output y (R, n) of the linear layer s for x (R, in), which is its columns
// from the given one on of out, with what its adapter adds.
func (s Scope) adapted(x, y *gorgonia.Node, from, out int) *gorgonia.Node {
	if !s.adapts() {
		return y
	}
	t, in, n := s.tuned, x.Shape()[1], y.Shape()[1]
	s = s.added()
	down, up := s.Param(LoRADown, LinearDefault(in), t.Rank, in), s.Param(LoRAUp, Zeros, out, t.Rank)
	h := nn.Linear(s.metric(LoRAMetric, t, t.context.dropout(x, t.Dropout)), down, nil) // (R, r)
	h = arith.Combine([]float32{float32(t.Scale())}, h)
	if n == out {
		return arith.Add(y, nn.Linear(h, up, nil))
	}
	return arith.Add(y, nn.LinearPart(h, up, nil, from, n))
}
