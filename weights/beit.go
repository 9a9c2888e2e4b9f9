package weights

import "github.com/geoalign/geoalign/encoders"

// beit is BEiT (Bao et al. 2022) of Hugging Face: scores have a bias by how patches lie to each other, keys no bias.
var beit = family{
	name:  "beit",
	types: []string{"beit"},
	parts: []part{{
		prefixes: []string{"beit.", ""},
		marks:    []string{"embeddings.patch_embeddings.projection.weight", "encoder.layer.0.layernorm_before.weight | layers.0.layernorm_before.weight", "encoder.layer.0.attention.attention.query.weight | layers.0.attention.q_proj.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "embeddings.patch_embeddings.projection.weight", flat},
			{"image/patch_embed/bias", "embeddings.patch_embeddings.projection.bias", nil},
			{"image/cls_token", "embeddings.cls_token", token},
			{"image/blocks/#/norm1/*", "encoder.layer.#.layernorm_before.* | layers.#.layernorm_before.*", nil},
			{"image/blocks/#/attn/qkv/weight", "encoder.layer.#.attention.attention.{query,key,value}.weight | layers.#.attention.{q,k,v}_proj.weight", nil},
			{"image/blocks/#/attn/qkv/bias", "encoder.layer.#.attention.attention.{query,value}.bias | layers.#.attention.{q,v}_proj.bias", qkvBias},
			{"image/blocks/#/attn/proj/*", "encoder.layer.#.attention.output.dense.* | layers.#.attention.o_proj.*", nil},
			{"image/blocks/#/norm2/*", "encoder.layer.#.layernorm_after.* | layers.#.layernorm_after.*", nil},
			{"image/blocks/#/mlp/fc1/*", "encoder.layer.#.intermediate.dense.* | layers.#.mlp.fc1.*", nil},
			{"image/blocks/#/mlp/fc2/*", "encoder.layer.#.output.dense.* | layers.#.mlp.fc2.*", nil},
		},
		may: []rule{
			{"image/pos_embed", "embeddings.position_embeddings", matrix},
			{"image/norm/*", "layernorm.*", nil},
			{"image/pool_norm/*", "pooler.layernorm.*", nil},
			{"image/blocks/#/scale1", "encoder.layer.#.lambda_1 | layers.#.lambda_1", nil},
			{"image/blocks/#/scale2", "encoder.layer.#.lambda_2 | layers.#.lambda_2", nil},
			{"image/blocks/#/attn/relative", "encoder.layer.#.attention.attention.relative_position_bias.relative_position_bias_table | layers.#.relative_position_bias.relative_position_bias_table", nil},
		},
		unneeded: []string{"embeddings.mask_token", "encoder.layer.*.relative_position_index", "layers.*.relative_position_index"},
	}},
	unneeded: []string{"classifier.*", "lm_head.*", "layernorm.*"},
	describe: func(d *description) error {
		k := d.keys()
		k.refuse("use_shared_relative_position_bias", "relative positions of each block by itself are read")
		if k.err != nil {
			return k.err
		}
		pool := "mean"
		if mean, said := keyOf[bool](k, "true or false", "use_mean_pooling"); said && !mean {
			pool = "class"
		} else if !d.has("image/pool_norm/weight") {
			pool = "class" // of a model of another head, such as that of masked images
		}
		if pool == "mean" {
			delete(d.values, "image/norm/weight")
			delete(d.values, "image/norm/bias")
		}
		return d.image(imageFacts{style: encoders.StyleBlock, activation: "gelu", pool: pool, eps: 1e-6, said: ofClass(d, 1e-12),
			heads: ofClass(d, 12), block: plainBlock(), preprocess: preprocess{half, half, resizeCrop, "bicubic", 0.875}})
	},
}
