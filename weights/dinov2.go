package weights

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
