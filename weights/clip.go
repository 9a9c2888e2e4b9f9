package weights

import (
	"errors"
)

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

// siglip is SigLIP (Zhai et al. 2023), and SigLIP 2 with images of one size, of Hugging Face, or one of its towers.
var siglip = family{
	name:  "siglip",
	types: []string{"siglip", "siglip_vision_model", "siglip_text_model"},
	parts: []part{{
		prefixes: []string{"vision_model.", ""},
		marks:    []string{"embeddings.patch_embedding.bias", "post_layernorm.weight"},
		needs: append([]rule{
			{"image/patch_embed/weight", "embeddings.patch_embedding.weight", flat},
			{"image/patch_embed/bias", "embeddings.patch_embedding.bias", nil},
			{"image/pos_embed", "embeddings.position_embedding.weight", matrix},
			{"image/norm/*", "post_layernorm.*", nil},
		}, clipBlocks...),
		may: []rule{
			{"image/pool/probe", "head.probe", probe},
			{"image/pool/qkv/*", "head.attention.in_proj_*", nil},
			{"image/pool/proj/*", "head.attention.out_proj.*", nil},
			{"image/pool/norm/*", "head.layernorm.*", nil},
			{"image/pool/mlp/fc1/*", "head.mlp.fc1.*", nil},
			{"image/pool/mlp/fc2/*", "head.mlp.fc2.*", nil},
		},
		unneeded: []string{"embeddings.position_ids"},
	}, {
		prefixes: []string{"text_model.", ""},
		marks:    []string{"embeddings.token_embedding.weight", "head.weight"},
		needs:    append([]rule{{"text_proj/*", "head.*", nil}}, clipText...),
		unneeded: []string{"embeddings.position_ids"},
	}, logitBias(single)},
	describe: func(d *description) error {
		image := imageFacts{style: "siglip", activation: "gelu_tanh", pool: "attention", eps: 1e-6,
			heads:      ofClass(d, 12),
			preprocess: preprocess{half, half, resizeSquash, "bicubic", 0}}
		if !d.has("image/pool/probe") {
			image.pool = "mean"
		}
		return d.towers(image, textFacts{style: "siglip", activation: "gelu_tanh", pool: "end", eps: 1e-6,
			heads: ofClass(d, 12), tokens: true})
	},
}

// clipMTOB is the dual encoder of clip-mtob (its "Multi(n,m)", and its reference with one class token): the image tower
// of open_clip with class tokens (m, D), and post-norm text layers by the names of PyTorch's nn.TransformerEncoder.
var clipMTOB = family{
	name:  "clip-mtob",
	types: []string{"clip-mtob"},
	parts: []part{openCLIPImage(classTokens), {
		prefixes: []string{""},
		marks:    []string{"token_embedding.weight", "ln_embedding.weight", "ln_final.weight"},
		needs: []rule{
			{"text/embeddings/word/weight", "token_embedding.weight", nil},
			{"text/embeddings/position/weight", "positional_embedding", matrix},
			{"text/embeddings/norm/*", "ln_embedding.*", nil},
			{"text/layers/#/attention/qkv/*", "transformer.encoder.layers.#.self_attn.in_proj_*", nil},
			{"text/layers/#/attention/output/*", "transformer.encoder.layers.#.self_attn.out_proj.*", nil},
			{"text/layers/#/attention/norm/*", "transformer.encoder.layers.#.norm1.*", nil},
			{"text/layers/#/ffn/intermediate/*", "transformer.encoder.layers.#.linear1.*", nil},
			{"text/layers/#/ffn/output/*", "transformer.encoder.layers.#.linear2.*", nil},
			{"text/layers/#/ffn/norm/*", "transformer.encoder.layers.#.norm2.*", nil},
			{"text/norm/*", "ln_final.*", nil},
		},
		may: []rule{{"text_proj/weight", "text_projection", transposed}},
	}, logitScale},
	describe: func(d *description) error {
		if d.depth("image/blocks/") == 0 || d.depth("text/layers/") == 0 {
			return errors.New("it lacks the image or the text tower, and the text tower is one of model.system = \"clip\" alone")
		}
		d.towerNotes = append(d.towerNotes, "its text layers are those of model.system = \"clip\" without a model.text.style: in any other system a text tower that starts from them computes something else")
		return d.towers(
			imageFacts{style: "clip", activation: "gelu", pool: "class", eps: 1e-5,
				preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}},
			textFacts{activation: "gelu", pool: "class", eps: 1e-5, tokens: true})
	},
}

// classes is the number of class tokens of an image, 0 without any.
func (f *fit) classes(name string) int {
	switch v, ok := f.values[name]; {
	case !ok:
		return 0
	case len(v.shape) == 2:
		return v.shape[0]
	}
	return 1
}
