package weights

import (
	"cmp"

	"github.com/geoalign/geoalign/encoders"
)

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
