package weights

// openCLIP is CLIP as open_clip and OpenAI's code name it, with the text tower at the top or below text.
var openCLIP = family{
	name:  "open_clip",
	types: []string{"open_clip"},
	parts: []part{{
		prefixes: []string{"visual."},
		marks:    []string{"conv1.weight", "class_embedding", "ln_pre.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "conv1.weight", flat},
			{"image/cls_token", "class_embedding", vector},
			{"image/pos_embed", "positional_embedding", matrix},
			{"image/norm_pre/*", "ln_pre.*", nil},
			{"image/blocks/#/norm1/*", "transformer.resblocks.#.ln_1.*", nil},
			{"image/blocks/#/attn/qkv/*", "transformer.resblocks.#.attn.in_proj_*", nil},
			{"image/blocks/#/attn/proj/*", "transformer.resblocks.#.attn.out_proj.*", nil},
			{"image/blocks/#/norm2/*", "transformer.resblocks.#.ln_2.*", nil},
			{"image/blocks/#/mlp/fc1/*", "transformer.resblocks.#.mlp.c_fc.*", nil},
			{"image/blocks/#/mlp/fc2/*", "transformer.resblocks.#.mlp.c_proj.*", nil},
			{"image/norm/*", "ln_post.*", nil},
		},
		may: []rule{{"image_proj/weight", "proj", transposed}},
	}, {
		prefixes: []string{"", "text."},
		marks:    []string{"token_embedding.weight", "positional_embedding", "ln_final.weight"},
		needs: []rule{
			{"text/embeddings/word/weight", "token_embedding.weight", nil},
			{"text/embeddings/position/weight", "positional_embedding", matrix},
			{"text/layers/#/norm1/*", "transformer.resblocks.#.ln_1.*", nil},
			{"text/layers/#/attention/qkv/*", "transformer.resblocks.#.attn.in_proj_*", nil},
			{"text/layers/#/attention/output/*", "transformer.resblocks.#.attn.out_proj.*", nil},
			{"text/layers/#/norm2/*", "transformer.resblocks.#.ln_2.*", nil},
			{"text/layers/#/ffn/intermediate/*", "transformer.resblocks.#.mlp.c_fc.*", nil},
			{"text/layers/#/ffn/output/*", "transformer.resblocks.#.mlp.c_proj.*", nil},
			{"text/norm/*", "ln_final.*", nil},
		},
		may:      []rule{{"text_proj/weight", "text_projection", transposed}},
		unneeded: []string{"attn_mask"},
	}, logitScale},
	unneeded: []string{"input_resolution", "context_length", "vocab_size"},
	describe: func(d *description) error {
		activation := "gelu"
		switch {
		case d.openCLIP == nil:
			d.assume("model.image.activation", "model.text.activation")
			d.note("no file says whether the activation is gelu or quick_gelu, which OpenAI's models have: gelu is assumed")
		case d.openCLIP.Model.QuickGELU:
			activation = "quick_gelu"
		}
		return d.towers(
			imageFacts{style: "clip", activation: activation, pool: "class", eps: 1e-5,
				preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic"}},
			textFacts{style: "clip", activation: activation, pool: "end", eps: 1e-5, tokens: true})
	},
}
