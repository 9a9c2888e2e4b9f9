package weights

// clip is CLIP (Radford et al. 2021) and MetaCLIP 2 (Chuang et al. 2025) of Hugging Face, or one of their towers.
var clip = family{
	name:  "clip",
	types: []string{"clip", "clip_vision_model", "clip_text_model", "metaclip_2", "metaclip_2_vision_model", "metaclip_2_text_model"},
	parts: []part{clipVision, {
		prefixes: []string{"text_model.", ""},
		marks:    []string{"embeddings.token_embedding.weight", "final_layer_norm.weight"},
		needs:    clipText,
		unneeded: []string{"embeddings.position_ids"},
	}, clipHead("visual_projection.", "image_proj/weight"), clipHead("text_projection.", "text_proj/weight"), logitScale},
	describe: func(d *description) error {
		return d.towers(clipImage(d),
			textFacts{style: "clip", activation: "quick_gelu", pool: "end", eps: 1e-5, heads: ofClass(d, 8),
				tokens: true})
	},
}

// chineseCLIP is Chinese-CLIP (Yang et al. 2022) of Hugging Face: the image tower of CLIP beside a BERT, of which the
// first token stands for a text.
var chineseCLIP = family{
	name:  "chinese-clip",
	types: []string{"chinese_clip", "chinese_clip_vision_model", "chinese_clip_text_model"},
	parts: []part{clipVision, bertText("text_model.", ""), clipHead("visual_projection.", "image_proj/weight"),
		clipHead("text_projection.", "text_proj/weight"), logitScale},
	describe: func(d *description) error {
		style, err := d.tokenTypes()
		if err != nil {
			return err
		}
		return d.towers(clipImage(d), textFacts{style: style, activation: "gelu", pool: "class", eps: styleEps[style],
			heads: ofClass(d, 12), said: ofClass(d, 1e-12)})
	},
}

// clipVision is the image tower of CLIP.
var clipVision = part{
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
}

// clipHead is a projection without a bias.
func clipHead(prefix, ours string) part {
	return part{prefixes: []string{prefix}, marks: []string{"weight"}, needs: []rule{{ours, "weight", nil}}}
}

// clipImage is what the image tower of CLIP has where no file says other.
func clipImage(d *description) imageFacts {
	return imageFacts{style: "clip", activation: "quick_gelu", pool: "class", eps: 1e-5, heads: ofClass(d, 12),
		preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}}
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
