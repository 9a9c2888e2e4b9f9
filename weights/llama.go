package weights

import (
	"math"

	"github.com/geoalign/geoalign/encoders"
)

// llamaPart is the tensors of transformers that are named as Llama's, more of which rules may say.
func llamaPart(more ...string) part {
	p := blockPart([]string{"", "model.", "language_model.model."}, "embed_tokens.weight", nil, append([]string{
		"text/layers/#/norm1", "layers.#.input_layernorm.*",
		"text/layers/#/attention/qkv", "layers.#.self_attn.{q_proj,k_proj,v_proj}.*",
		"text/layers/#/attention/output", "layers.#.self_attn.o_proj.*",
		"text/layers/#/ffn/intermediate", "layers.#.mlp.{gate_proj,up_proj}.*",
		"text/layers/#/ffn/output", "layers.#.mlp.down_proj.*",
		"text/norm", "norm.*"}, more...)...)
	return p
}

// heads are norms of queries and keys.
var qkNorms = []rule{
	{"text/layers/#/attention/q_norm/weight", "layers.#.self_attn.q_norm.weight", nil},
	{"text/layers/#/attention/k_norm/weight", "layers.#.self_attn.k_norm.weight", nil},
}

// qwen3 is Qwen3 and Qwen3 Embedding (Zhang et al. 2025): a decoder whose last word stands for a text.
var qwen3 = family{
	name:  "qwen3",
	types: []string{"qwen3"},
	parts: []part{func() part {
		p := llamaPart("text/layers/#/norm2", "layers.#.post_attention_layernorm.*")
		p.may = append(p.may, qkNorms...)
		return p
	}()},
	unneeded: []string{"lm_head.*", "score.*"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(encoders.Block{Order: encoders.OrderPre, Norm: encoders.NormRoot, QKNorm: encoders.NormRoot,
			Places: encoders.PlacesRotary, Causal: true}, "silu", 1e-6, 32768)
		o.pool = "end"
		k.refuse("use_sliding_window", "attention to all words is read")
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

// euroBERT is EuroBERT (Boizard et al. 2025).
var euroBERT = family{
	name:     "eurobert",
	types:    []string{"eurobert"},
	parts:    []part{llamaPart("text/layers/#/norm2", "layers.#.post_attention_layernorm.*")},
	unneeded: []string{"lm_head.*"},
	describe: func(d *description) error {
		return d.block(usualBlock(encoders.Block{Order: encoders.OrderPre, Norm: encoders.NormRoot,
			Places: encoders.PlacesRotary}, "silu", 1e-5, 8192))
	},
}

// gemma3 is the text side of Gemma 3 and EmbeddingGemma (Vera et al. 2025), whose norms have 1 + weight.
var gemma3 = family{
	name:  "gemma3",
	types: []string{"gemma3_text"},
	parts: []part{func() part {
		p := llamaPart("text/layers/#/norm1_out", "layers.#.post_attention_layernorm.*",
			"text/layers/#/norm2", "layers.#.pre_feedforward_layernorm.*",
			"text/layers/#/norm2_out", "layers.#.post_feedforward_layernorm.*")
		p.may = append(p.may, qkNorms...)
		for _, list := range [][]rule{p.needs, p.may} {
			for i, r := range list {
				if _, vector := plusOneNames[r.ours]; vector {
					list[i].make = plusOne
				}
			}
		}
		return p
	}()},
	unneeded: []string{"lm_head.*"},
	describe: func(d *description) error {
		k := d.keys()
		width, err := d.size("text/embeddings/word/weight", 1)
		if err != nil {
			return err
		}
		o := usualBlock(encoders.Block{Order: encoders.OrderSandwich, Norm: encoders.NormRoot, QKNorm: encoders.NormRoot,
			Places: encoders.PlacesRotary, Theta: 1e6, LocalTheta: 1e4, Causal: !k.yes("use_bidirectional_attention"),
			GlobalEvery: 6, GlobalAt: 5, EmbedScale: math.Sqrt(float64(width))}, "gelu_tanh", 1e-6, 131072)
		o.Window = k.whole("sliding_window")
		if o.Window == 0 {
			o.Window = ofClass(d, 4096)
		}
		if !o.Causal { // both sides share it
			o.Window /= 2
		} else {
			o.Window--
		}
		scalar := k.number("query_pre_attn_scalar")
		if scalar == 0 {
			scalar = 256
		}
		o.Scale = 1 / math.Sqrt(scalar)
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

// plusOneNames are the norms of Gemma.
var plusOneNames = map[string]bool{
	"text/layers/#/norm1/weight": true, "text/layers/#/norm1_out/weight": true, "text/layers/#/norm2/weight": true,
	"text/layers/#/norm2_out/weight": true, "text/norm/weight": true, "text/layers/#/attention/q_norm/weight": true,
	"text/layers/#/attention/k_norm/weight": true,
}
