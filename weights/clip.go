package weights

// clip is CLIP (Radford et al. 2021) of Hugging Face, or one of its towers.
var clip = family{
	name:  "clip",
	types: []string{"clip", "clip_vision_model", "clip_text_model"},
	parts: []part{{
		prefixes: []string{"vision_model.", ""},
		marks:    []string{"embeddings.class_embedding", "pre_layrnorm.weight"},
		needs: append([]rule{
			{"image/patch_embed/weight", "embeddings.patch_embedding.weight", flat},
			{"image/cls_token", "embeddings.class_embedding", vector},
			{"image/pos_embed", "embeddings.position_embedding.weight", matrix},
			{"image/norm_pre/*", "pre_layrnorm.*", nil},
			{"image/norm/*", "post_layernorm.*", nil},
		}, clipBlocks...),
		unneeded: []string{"embeddings.position_ids"},
	}, {
		prefixes: []string{"text_model.", ""},
		marks:    []string{"embeddings.token_embedding.weight", "final_layer_norm.weight"},
		needs:    clipText,
		unneeded: []string{"embeddings.position_ids"},
	}, {
		prefixes: []string{"visual_projection."},
		marks:    []string{"weight"},
		needs:    []rule{{"image_proj/weight", "weight", nil}},
	}, {
		prefixes: []string{"text_projection."},
		marks:    []string{"weight"},
		needs:    []rule{{"text_proj/weight", "weight", nil}},
	}, logitScale},
	describe: func(d *description) error {
		return d.towers(
			imageFacts{style: "clip", activation: "quick_gelu", pool: "class", eps: 1e-5, heads: ofClass(d, 12),
				preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}},
			textFacts{style: "clip", activation: "quick_gelu", pool: "end", eps: 1e-5, heads: ofClass(d, 8),
				tokens: true})
	},
}

// logitScale is the logarithm of the scale of the scores, 1/temperature.
var logitScale = part{
	prefixes: []string{""},
	marks:    []string{"logit_scale"},
	needs: []rule{
		{"temperature", "logit_scale", inverseExp},
		{"logit_scale", "logit_scale", scalar},
	},
}

// logitBias is the scale, as its logarithm, and the bias of SigLIP's loss, stored in a shape.
func logitBias(stored *shaping) part {
	return part{
		prefixes: []string{""},
		marks:    []string{"logit_scale", "logit_bias"},
		needs: []rule{
			{"siglip/log_scale", "logit_scale", stored},
			{"siglip/bias", "logit_bias", stored},
		},
	}
}

// clipBlocks are the blocks of the image towers of CLIP and SigLIP.
var clipBlocks = []rule{
	{"image/blocks/#/norm1/*", "encoder.layers.#.layer_norm1.*", nil},
	{"image/blocks/#/attn/qkv/*", "encoder.layers.#.self_attn.{q,k,v}_proj.*", nil},
	{"image/blocks/#/attn/proj/*", "encoder.layers.#.self_attn.out_proj.*", nil},
	{"image/blocks/#/norm2/*", "encoder.layers.#.layer_norm2.*", nil},
	{"image/blocks/#/mlp/fc1/*", "encoder.layers.#.mlp.fc1.*", nil},
	{"image/blocks/#/mlp/fc2/*", "encoder.layers.#.mlp.fc2.*", nil},
}

// clipText is the text towers of CLIP and SigLIP.
var clipText = []rule{
	{"text/embeddings/word/weight", "embeddings.token_embedding.weight", nil},
	{"text/embeddings/position/weight", "embeddings.position_embedding.weight", nil},
	{"text/layers/#/norm1/*", "encoder.layers.#.layer_norm1.*", nil},
	{"text/layers/#/attention/qkv/*", "encoder.layers.#.self_attn.{q,k,v}_proj.*", nil},
	{"text/layers/#/attention/output/*", "encoder.layers.#.self_attn.out_proj.*", nil},
	{"text/layers/#/norm2/*", "encoder.layers.#.layer_norm2.*", nil},
	{"text/layers/#/ffn/intermediate/*", "encoder.layers.#.mlp.fc1.*", nil},
	{"text/layers/#/ffn/output/*", "encoder.layers.#.mlp.fc2.*", nil},
	{"text/norm/*", "final_layer_norm.*", nil},
}
