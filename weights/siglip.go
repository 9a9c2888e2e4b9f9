package weights

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
