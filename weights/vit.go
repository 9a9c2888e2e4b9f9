package weights

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
