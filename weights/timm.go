package weights

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// timm is vision transformers of timm, and the files of DeiT's and DINOv2's authors, which have the same names.
var timm = family{
	name:  "timm",
	types: []string{"timm"},
	parts: []part{timmVision("")},
	describe: func(d *description) error {
		args := d.config.Args
		if d.rotary(d.config.Architecture) {
			return errors.New(rotaryAttention)
		}
		o, unlike := d.timmFacts("", d.config.Architecture, args.Pool)
		if unlike != "" { // a tower alone may be read in another way
			d.note("%s: %s is taken, and model.image.pool may be another", unlike, o.pool)
		}
		if args.PoolAll {
			d.note("%s has pool_include_prefix = true, and a mean here leaves out class token and registers", d.path)
		}
		o.heads = cmp.Or(args.Heads, o.heads)
		if args.Norm != nil { // with the epsilon of its class, whatever the architecture's
			o.said = 1e-6
		}
		act, ok := args.Activation.(string)
		switch gated := d.gated(); {
		case !ok, gated && act == "silu":
		case !gated && slices.Contains([]string{"gelu", "gelu_tanh", "quick_gelu"}, act):
			o.activation = act
		default:
			return fmt.Errorf("%s has act_layer %q in model_args, and gelu, gelu_tanh and quick_gelu are read, of gated MLPs silu", d.path, act)
		}
		return d.image(o)
	},
}

// timmFacts is what a vision transformer of timm has by its tensors below a prefix and its architecture. pool is the
// argument global_pool, empty where it is the architecture's. unlike says what no style here makes of the tokens of an
// image, empty where one does.
func (d *description) timmFacts(prefix, architecture, pool string) (o imageFacts, unlike string) {
	d.smooth = true
	o = imageFacts{style: "vit", activation: "gelu", pool: "class", eps: 1e-6,
		preprocess: preprocess{half, half, resizeCrop, "bicubic", 0}}
	_, normLast := d.file.Lookup(prefix + "fc_norm.weight") // behind the pool
	switch {
	case d.has("image/blocks/00/scale1"):
		o.style, o.preprocess.mean, o.preprocess.std = "dinov2", imageNetMean, imageNetStd
	case d.has("image/norm_pre/weight"):
		o.style, o.eps, o.preprocess = "clip", 1e-5, preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}
	case !d.has("image/cls_token") && !normLast:
		o.style, o.pool, o.preprocess.resize = "siglip", "mean", resizeSquash
	case d.has("image/registers") || strings.HasPrefix(architecture, "deit"):
		o.preprocess.mean, o.preprocess.std = imageNetMean, imageNetStd
	}
	if architecture != "" {
		o.said = 1e-6
		if strings.Contains(architecture, "_clip_") {
			o.said = 1e-5
		}
	}
	switch {
	case strings.Contains(architecture, "quickgelu"):
		o.activation = "quick_gelu"
	case slices.ContainsFunc(timmTanh, func(name string) bool { return strings.Contains(architecture, name) }):
		o.activation = "gelu_tanh"
	}
	if strings.Contains(architecture, "giantopt") || strings.Contains(architecture, "vit_base_patch16_gap_224") {
		o.heads = 16
	}
	switch mean := pool == "avg" || pool == "" && normLast; {
	case d.has("image/pool/probe"):
		if o.pool = "attention"; normLast {
			unlike = "an image is the norm of what the pool by attention gives, and here the norm is before the pool"
		}
	case mean && normLast == (o.style == "vit"):
		o.pool = "mean"
	case mean && normLast:
		unlike = "an image is the norm of the mean of its patches, and that of style " + o.style +
			" the mean of normalised ones"
	case mean:
		unlike = "an image is the mean of its normalised patches, and that of style vit the norm of their mean"
	case !slices.Contains([]string{"", "token", "map"}, pool):
		unlike = fmt.Sprintf("an image is pooled by %q", pool)
	}
	return o, unlike
}

// rotary says whether the attention of an architecture of timm turns queries and keys by the places of patches, which
// no tensor shows. Where no file names the architecture, a Perception Encoder is known by its tensors: others of timm
// with a norm before their blocks have no pool by attention.
func (d *description) rotary(architecture string) bool {
	if architecture == "" {
		return d.has("image/pool/probe") && d.has("image/norm_pre/weight")
	}
	return slices.ContainsFunc([]string{"_pe_core_", "_pe_spatial_", "_pe_lang_", "_rope_"},
		func(part string) bool { return strings.Contains(architecture, part) })
}

const rotaryAttention = "its attention turns queries and keys by the places of patches (rotary position embeddings, as in Perception Encoders), and no style here does so"

// timmTanh are parts of the names of timm's architectures whose activation is the approximation of GELU by tanh.
var timmTanh = []string{"so400m_patch16_siglip", "giantopt_patch16_siglip", "base_patch32_siglip",
	"large_patch16_siglip_512", "large_patch16_siglip_gap_512"}

// timmVision is the tensors of a vision transformer below a prefix.
func timmVision(prefix string) part {
	return part{
		prefixes: []string{prefix},
		marks:    []string{"patch_embed.proj.weight", "pos_embed", "blocks.0.attn.qkv.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "patch_embed.proj.weight", flat},
			{"image/pos_embed", "{pos_embed,cls_token,reg_token} | {pos_embed,cls_token,register_tokens} | {pos_embed,cls_token,dist_token} | {pos_embed,cls_token} | {pos_embed,reg_token} | pos_embed", gridPositions},
			{"image/blocks/#/norm1/*", "blocks.#.norm1.*", nil},
			{"image/blocks/#/attn/qkv/*", "blocks.#.attn.qkv.*", nil},
			{"image/blocks/#/attn/proj/*", "blocks.#.attn.proj.*", nil},
			{"image/blocks/#/norm2/*", "blocks.#.norm2.*", nil},
			{"image/blocks/#/mlp/fc1/*", "blocks.#.mlp.fc1.* | blocks.#.mlp.w12.*", nil},
			{"image/blocks/#/mlp/fc2/*", "blocks.#.mlp.fc2.* | blocks.#.mlp.w3.*", nil},
			{"image/norm/*", "norm.* | fc_norm.*", nil},
		},
		may: []rule{
			{"image/patch_embed/bias", "patch_embed.proj.bias", nil},
			{"image/cls_token", "cls_token", token},
			{"image/registers", "{reg_token,pos_embed,cls_token} | {register_tokens,pos_embed,cls_token} | {dist_token,pos_embed,cls_token} | {reg_token,pos_embed}", registerTokens},
			{"image/norm_pre/*", "norm_pre.*", nil},
			{"image/blocks/#/scale1", "blocks.#.ls1.gamma", vector},
			{"image/blocks/#/scale2", "blocks.#.ls2.gamma", vector},
			{"image/pool/probe", "attn_pool.latent", probe},
			{"image/pool/qkv/*", "attn_pool.{q,kv}.*", queryFirst},
			{"image/pool/proj/*", "attn_pool.proj.*", nil},
			{"image/pool/norm/*", "attn_pool.norm.*", nil},
			{"image/pool/mlp/fc1/*", "attn_pool.mlp.fc1.*", nil},
			{"image/pool/mlp/fc2/*", "attn_pool.mlp.fc2.*", nil},
		},
		unneeded: []string{"head.*", "head_dist.*", "mask_token"},
	}
}
