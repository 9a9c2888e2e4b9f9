package weights

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

// postRotary is a post-norm block with rotary positions.
func postRotary(theta float64) encoders.Block {
	return encoders.Block{Order: encoders.OrderPost, Norm: encoders.NormLayer, Places: encoders.PlacesRotary,
		Theta: theta}
}

// tokenType is the table of types of tokens, the first of which every word has.
var tokenType = rule{"text/embeddings/token_type/weight", "embeddings.token_type_embeddings.weight", nil}

// nomicBERT is Nomic Embed (Nussbaum et al. 2024), in the names of its repository.
var nomicBERT = family{
	name:  "nomic-bert",
	types: []string{"nomic_bert"},
	parts: []part{blockPart([]string{"", "bert."}, "embeddings.word_embeddings.weight", []rule{tokenType},
		"text/embeddings/norm", "emb_ln.*",
		"text/layers/#/attention/qkv", "encoder.layers.#.attn.Wqkv.*",
		"text/layers/#/attention/output", "encoder.layers.#.attn.out_proj.*",
		"text/layers/#/norm1", "encoder.layers.#.norm1.*",
		"text/layers/#/ffn/intermediate", "encoder.layers.#.mlp.{fc12,fc11}.* | encoder.layers.#.mlp.fc1.*",
		"text/layers/#/ffn/output", "encoder.layers.#.mlp.fc2.*",
		"text/layers/#/norm2", "encoder.layers.#.norm2.*")},
	unneeded: []string{"cls.*", "pooler.*"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(postRotary(1000), "silu", 1e-12, 2048)
		o.width, o.layers = append([]string{"n_embd"}, keysWidth...), append([]string{"n_layer"}, keysLayers...)
		o.heads, o.mlp = append([]string{"n_head"}, keysHeads...), append([]string{"n_inner"}, keysMLP...)
		k.refuse("prenorm", "norms behind attention and MLP are read")
		k.refuse("parallel_block", "attention and MLP one behind the other are read")
		k.refuse("use_rms_norm", "layer norms are read")
		o.Adjacent = k.yes("rotary_emb_interleaved")
		if base := k.number("rotary_emb_scale_base"); base != 0 {
			k.err = errors.Join(k.err, fmt.Errorf("%s has rotary_emb_scale_base = %g, and rotary positions without it are read", d.path, base))
		}
		if n := k.whole("num_experts"); n > 1 {
			k.err = errors.Join(k.err, fmt.Errorf("%s has %d experts, and MLPs are read", d.path, n))
		}
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

// gte is GTE (Zhang et al. 2024), in the names of its repository.
var gte = family{
	name:  "gte",
	types: []string{"gte", "new"},
	parts: []part{blockPart([]string{"new.", ""}, "embeddings.word_embeddings.weight", []rule{tokenType,
		{"text/layers/#/ffn/intermediate/weight", "encoder.layer.#.mlp.up_gate_proj.weight", halvesSwapped}},
		"text/embeddings/norm", "embeddings.LayerNorm.*",
		"text/layers/#/attention/qkv", "encoder.layer.#.attention.qkv_proj.* | encoder.layer.#.attention.{q_proj,k_proj,v_proj}.*",
		"text/layers/#/attention/output", "encoder.layer.#.attention.o_proj.*",
		"text/layers/#/norm1", "encoder.layer.#.attn_ln.*",
		"text/layers/#/ffn/output", "encoder.layer.#.mlp.down_proj.*",
		"text/layers/#/norm2", "encoder.layer.#.mlp_ln.*")},
	unneeded: []string{"lm_head.*", "classifier.*", "pooler.*", "embeddings.position_ids"},
	describe: func(d *description) error {
		k := d.keys()
		o := usualBlock(postRotary(160000), "gelu", 1e-12, 8192)
		o.pool, o.ntk = "class", true
		k.refuse("logn_attention_scale", "scores without it are read")
		if kind := k.text("layer_norm_type"); kind == "rms_norm" {
			o.Norm = encoders.NormRoot
		}
		if kind := k.text("position_embedding_type"); kind != "" && kind != "rope" {
			k.err = errors.Join(k.err, fmt.Errorf("%s has position_embedding_type %q, and rope is read", d.path, kind))
		}
		if k.err != nil {
			return k.err
		}
		return d.block(o)
	},
}

// jinaV3 is jina-embeddings-v3 (Sturua et al. 2024), in the names of its repository, without its adapters.
var jinaV3 = family{
	name:  "jina-v3",
	types: []string{"jina_embeddings_v3"},
	parts: []part{blockPart([]string{"", "roberta."}, "embeddings.word_embeddings.weight", []rule{tokenType, pooler},
		"text/embeddings/norm", "emb_ln.*",
		"text/layers/#/attention/qkv", "encoder.layers.#.mixer.Wqkv.*",
		"text/layers/#/attention/output", "encoder.layers.#.mixer.out_proj.*",
		"text/layers/#/norm1", "encoder.layers.#.norm1.*",
		"text/layers/#/ffn/intermediate", "encoder.layers.#.mlp.fc1.*",
		"text/layers/#/ffn/output", "encoder.layers.#.mlp.fc2.*",
		"text/layers/#/norm2", "encoder.layers.#.norm2.*")},
	unneeded: []string{"lm_head.*"},
	describe: func(d *description) error {
		return d.block(usualBlock(postRotary(20000), "gelu", 1e-5, 8194))
	},
}
