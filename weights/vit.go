package weights

import (
	"cmp"

	"github.com/geoalign/geoalign/encoders"
)

// vit is the vision transformer (Dosovitskiy et al. 2021) and DeiT (Touvron et al. 2021) of Hugging Face.
// DeiT's distillation token is a register here. Newer versions of the library store other names than older ones.
var vit = family{
	name:  "vit",
	types: []string{"vit", "deit"},
	parts: []part{{
		prefixes: []string{"vit.", "deit.", ""},
		marks:    []string{"embeddings.patch_embeddings.projection.weight", "layernorm.weight", "encoder.layer.0.layernorm_before.weight | layers.0.layernorm_before.weight"},
		needs: append([]rule{
			{"image/blocks/#/norm1/*", "encoder.layer.#.layernorm_before.* | layers.#.layernorm_before.*", nil},
			{"image/blocks/#/norm2/*", "encoder.layer.#.layernorm_after.* | layers.#.layernorm_after.*", nil},
			{"image/blocks/#/mlp/fc1/*", "encoder.layer.#.intermediate.dense.* | layers.#.mlp.fc1.*", nil},
			{"image/blocks/#/mlp/fc2/*", "encoder.layer.#.output.dense.* | layers.#.mlp.fc2.*", nil},
		}, hfVision...),
		may:      []rule{hfRegisters},
		unneeded: []string{"embeddings.mask_token", "pooler.*"},
	}},
	unneeded: []string{"classifier.*", "cls_classifier.*", "distillation_classifier.*"},
	describe: func(d *description) error {
		if err := d.absentBiases(); err != nil {
			return err
		}
		o := imageFacts{style: "deit", activation: "gelu", pool: "class", eps: 1e-12, heads: ofClass(d, 12),
			preprocess: preprocess{half, half, resizeSquash, "bilinear", 0}}
		if d.config.ModelType == "deit" || d.has("image/registers") {
			o.preprocess = preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0}
		}
		if d.config.Eps > 1e-9 {
			o.style, o.eps = "vit", 1e-6
		}
		return d.image(o)
	},
}

// hfVision are the tensors that ViT, DeiT and DINOv2 share.
var hfVision = []rule{
	{"image/patch_embed/weight", "embeddings.patch_embeddings.projection.weight", flat},
	{"image/patch_embed/bias", "embeddings.patch_embeddings.projection.bias", nil},
	{"image/cls_token", "embeddings.cls_token", token},
	{"image/pos_embed", "embeddings.{position_embeddings,cls_token,register_tokens} | embeddings.{position_embeddings,cls_token,distillation_token} | embeddings.{position_embeddings,cls_token}", gridPositions},
	{"image/blocks/#/attn/qkv/*", "encoder.layer.#.attention.attention.{query,key,value}.* | encoder.layer.#.attention.{q,k,v}_proj.* | layers.#.attention.{q,k,v}_proj.*", nil},
	{"image/blocks/#/attn/proj/*", "encoder.layer.#.attention.output.dense.* | encoder.layer.#.attention.o_proj.* | layers.#.attention.o_proj.*", nil},
	{"image/norm/*", "layernorm.*", nil},
}

var hfRegisters = rule{"image/registers",
	"embeddings.{register_tokens,position_embeddings,cls_token} | embeddings.{distillation_token,position_embeddings,cls_token}", registerTokens}

// vitTorchvision is the vision transformer of torchvision, a state dict without other files.
var vitTorchvision = family{
	name:  "vit_torchvision",
	below: "encoder.layers.encoder_layer_",
	parts: []part{{
		prefixes: []string{""},
		marks:    []string{"conv_proj.weight", "class_token", "encoder.layers.encoder_layer_0.ln_1.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "conv_proj.weight", flat},
			{"image/patch_embed/bias", "conv_proj.bias", nil},
			{"image/cls_token", "class_token", token},
			{"image/pos_embed", "encoder.pos_embedding", matrix},
			{"image/blocks/#/norm1/*", "encoder.layers.encoder_layer_#.ln_1.*", nil},
			{"image/blocks/#/attn/qkv/*", "encoder.layers.encoder_layer_#.self_attention.in_proj_*", nil},
			{"image/blocks/#/attn/proj/*", "encoder.layers.encoder_layer_#.self_attention.out_proj.*", nil},
			{"image/blocks/#/norm2/*", "encoder.layers.encoder_layer_#.ln_2.*", nil},
			{"image/blocks/#/mlp/fc1/*", "encoder.layers.encoder_layer_#.mlp.0.* | encoder.layers.encoder_layer_#.mlp.linear_1.*", nil},
			{"image/blocks/#/mlp/fc2/*", "encoder.layers.encoder_layer_#.mlp.3.* | encoder.layers.encoder_layer_#.mlp.linear_2.*", nil},
			{"image/norm/*", "encoder.ln.*", nil},
		},
	}},
	unneeded: []string{"heads.*"},
	describe: func(d *description) error {
		return d.image(imageFacts{style: "vit", activation: "gelu", pool: "class", eps: 1e-6,
			preprocess: preprocess{imageNetMean, imageNetStd, resizeCrop, "bilinear", 0.875}})
	},
}

// dinov2 is DINOv2 (Oquab et al. 2024), also with registers (Darcet et al. 2024), of Hugging Face.
var dinov2 = family{
	name:  "dinov2",
	types: []string{"dinov2", "dinov2_with_registers"},
	parts: []part{{
		prefixes: []string{"dinov2.", "dinov2_with_registers.", ""},
		marks:    []string{"embeddings.patch_embeddings.projection.weight", "encoder.layer.0.layer_scale1.lambda1"},
		needs: append([]rule{
			{"image/blocks/#/norm1/*", "encoder.layer.#.norm1.*", nil},
			{"image/blocks/#/scale1", "encoder.layer.#.layer_scale1.lambda1", vector},
			{"image/blocks/#/norm2/*", "encoder.layer.#.norm2.*", nil},
			{"image/blocks/#/mlp/fc1/*", "encoder.layer.#.mlp.fc1.* | encoder.layer.#.mlp.weights_in.* | encoder.layer.#.mlp.{gate,up}_proj.*", nil},
			{"image/blocks/#/mlp/fc2/*", "encoder.layer.#.mlp.fc2.* | encoder.layer.#.mlp.weights_out.* | encoder.layer.#.mlp.down_proj.*", nil},
			{"image/blocks/#/scale2", "encoder.layer.#.layer_scale2.lambda1", vector},
		}, hfVision...),
		may:      []rule{hfRegisters},
		unneeded: []string{"embeddings.mask_token"},
	}},
	unneeded: []string{"classifier.*"},
	describe: func(d *description) error {
		if err := d.absentBiases(); err != nil {
			return err
		}
		d.smooth = d.has("image/registers")
		return d.image(imageFacts{style: "dinov2", activation: "gelu", pool: "class", eps: 1e-6, heads: ofClass(d, 12),
			preprocess: preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0}})
	},
}

// dinov3 is the vision transformer of DINOv3 (Simeoni et al. 2025) of Hugging Face: no table of positions, but queries
// and keys turned by them, and no bias of keys.
var dinov3 = family{
	name:  "dinov3",
	types: []string{"dinov3_vit"},
	parts: []part{{
		prefixes: []string{"dinov3_vit.", "model.", ""},
		marks:    []string{"embeddings.patch_embeddings.weight", "layer.0.attention.q_proj.weight | model.layer.0.attention.q_proj.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "embeddings.patch_embeddings.weight", flat},
			{"image/patch_embed/bias", "embeddings.patch_embeddings.bias", nil},
			{"image/cls_token", "embeddings.cls_token", token},
			{"image/blocks/#/norm1/*", dinov3Layer("norm1.*"), nil},
			{"image/blocks/#/attn/qkv/weight", dinov3Layer("attention.{q,k,v}_proj.weight"), nil},
			{"image/blocks/#/attn/proj/weight", dinov3Layer("attention.o_proj.weight"), nil},
			{"image/blocks/#/scale1", dinov3Layer("layer_scale1.lambda1"), vector},
			{"image/blocks/#/norm2/*", dinov3Layer("norm2.*"), nil},
			{"image/blocks/#/mlp/fc1/weight", dinov3Layer("mlp.{gate,up}_proj.weight") + " | " + dinov3Layer("mlp.up_proj.weight"), nil},
			{"image/blocks/#/mlp/fc2/weight", dinov3Layer("mlp.down_proj.weight"), nil},
			{"image/blocks/#/scale2", dinov3Layer("layer_scale2.lambda1"), vector},
			{"image/norm/*", "norm.*", nil},
		},
		may: []rule{
			{"image/registers", "embeddings.register_tokens", probe},
			{"image/blocks/#/attn/qkv/bias", dinov3Layer("attention.{q,k,v}_proj.bias") + " | " + dinov3Layer("attention.{q,v}_proj.bias"), qkvBias},
			{"image/blocks/#/attn/proj/bias", dinov3Layer("attention.o_proj.bias"), nil},
			{"image/blocks/#/mlp/fc1/bias", dinov3Layer("mlp.{gate,up}_proj.bias") + " | " + dinov3Layer("mlp.up_proj.bias"), nil},
			{"image/blocks/#/mlp/fc2/bias", dinov3Layer("mlp.down_proj.bias"), nil},
		},
		unneeded: []string{"embeddings.mask_token", "embeddings.register_tokens"}, // of no rows
	}},
	unneeded: []string{"classifier.*"},
	describe: func(d *description) error {
		if err := d.absentBiases(); err != nil {
			return err
		}
		k, b := d.keys(), plainBlock()
		b.Rotary, b.Theta = encoders.RotaryCentred, cmp.Or(k.number("rope_theta"), k.below("rope_parameters").number("rope_theta"), 100)
		if k.err != nil {
			return k.err
		}
		return d.image(imageFacts{style: encoders.StyleBlock, activation: "gelu", pool: "class", eps: 1e-6, said: 1e-5,
			heads: ofClass(d, 6), block: b, preprocess: preprocess{imageNetMean, imageNetStd, resizeSquash, "bilinear", 0}})
	},
}

// dinov3Layer is a tensor of a layer, by the name in files or in the program.
func dinov3Layer(name string) string { return "layer.#." + name + " | model.layer.#." + name }

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
