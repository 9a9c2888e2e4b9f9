package weights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
)

// timm is vision transformers of timm, and the files of DeiT's and DINOv2's authors, which have the same names.
var timm = family{
	name:  "timm",
	types: []string{"timm"},
	parts: []part{timmVision("")},
	describe: func(d *description) error {
		args := d.config.Args
		o, unlike, err := d.timmFacts("", d.config.Architecture, args.Pool)
		if err != nil {
			return err
		}
		if unlike != "" { // a tower alone may be read in another way
			d.differs("%s: %s is taken, and model.image.pool may be another", unlike, o.pool)
		}
		o.heads = cmp.Or(args.Heads, o.heads)
		switch norm, _ := args.Norm.(string); {
		case args.Norm == nil:
		case norm == "layernorm", norm == "layernormfp32":
			o.said = 1e-6 // of its class, whatever the architecture's
		default:
			return fmt.Errorf("%s has norm_layer %v in model_args, and layernorm is read", d.path, args.Norm)
		}
		if args.Eva() && args.Activation != nil {
			return fmt.Errorf("%s has act_layer %v in model_args, which is not read of such towers", d.path, args.Activation)
		}
		act, ok := args.Activation.(string)
		switch gated := d.gated(); {
		case args.Activation == nil, gated && act == "silu":
		case !ok:
			return fmt.Errorf("%s has act_layer %v in model_args, and a name is read", d.path, args.Activation)
		case slices.Contains([]string{"gelu", "gelu_tanh", "quick_gelu"}, act) && (!gated || o.block != nil):
			o.activation = act
		case slices.Contains(blockActs, act) && !gated:
			o.activation = strings.Replace(act, "swish", "silu", 1)
		default:
			return fmt.Errorf("%s has act_layer %q in model_args, and gelu, gelu_tanh, quick_gelu, silu and relu are read, of gated MLPs silu", d.path, act)
		}
		return d.image(o)
	},
}

// blockActs are activations that towers of style block alone have.
var blockActs = []string{"relu", "silu", "swish"}

// timmFacts is what a vision transformer of timm has by its tensors below a prefix and its architecture. pool is the
// argument global_pool, empty where it is the architecture's. unlike says what no tower here makes of the tokens of an
// image, empty where one does.
func (d *description) timmFacts(prefix, architecture, pool string) (o imageFacts, unlike string, err error) {
	d.smooth = true
	args := d.config.Args
	if err := d.timmRefused(prefix, architecture); err != nil {
		return o, "", err
	}
	if err := d.absentBiases(); err != nil {
		return o, "", err
	}
	o = imageFacts{style: "vit", activation: "gelu", pool: "class", eps: 1e-6,
		preprocess: preprocess{half, half, resizeCrop, "bicubic", 0}}
	_, normLast := d.file.Lookup(prefix + "fc_norm.weight") // behind the pool
	_, norm := d.file.Lookup(prefix + "norm.weight")
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
		if strings.Contains(architecture, "_clip_") && !isEva(architecture) || strings.Contains(architecture, "_pe_") ||
			strings.Contains(architecture, "_dinov3") || strings.HasPrefix(architecture, "beit3_") {
			o.said = 1e-5
		}
	}
	switch {
	case strings.Contains(architecture, "quickgelu"):
		o.activation = "quick_gelu"
	case slices.ContainsFunc(timmTanh, func(name string) bool { return strings.Contains(architecture, name) }):
		o.activation = "gelu_tanh"
	}
	o.heads = timmHeads(architecture)
	rotary, err := d.timmRotary(architecture)
	if err != nil {
		return o, "", err
	}
	switch pool = timmPool(architecture, pool, d.has("image/cls_token"), normLast); {
	case d.has("image/pool/probe"):
		o.pool = "attention"
	case pool == "avg":
		o.pool = "mean"
	case pool != "token" || !d.has("image/cls_token"):
		if unlike = fmt.Sprintf("an image is pooled by %q", pool); !d.has("image/cls_token") {
			o.pool = "mean"
		}
	}
	if _, ok := d.file.Lookup(prefix + "dist_token"); ok && unlike == "" {
		unlike = "an image is the mean of class and distillation token"
	}
	// Of style vit a norm behind the mean is that of all tokens, too.
	ofMean := o.style == "vit" && o.pool != "attention" && normLast && !norm
	placed := ofMean || !normLast && (o.style != "vit" || o.pool != "mean")
	all := args.PoolAll && o.pool != "class"
	act, _ := args.Activation.(string)
	if placed && d.beyond(o.style) == "" && !rotary.eva && !all && !slices.Contains(blockActs, act) {
		delete(d.values, "image/pool_norm/weight")
		delete(d.values, "image/pool_norm/bias")
		return o, unlike, nil
	}
	b := plainBlock()
	o.said = cmp.Or(o.said, o.eps)
	o.block, o.style, o.eps = b, encoders.StyleBlock, 1e-6
	b.Rotary, b.Theta, b.Reference, b.Offset = rotary.kind, rotary.theta, rotary.reference, rotary.offset
	b.ColumnsFirst, b.Adjacent, b.PoolHeads = rotary.columnsFirst, rotary.adjacent, rotary.poolHeads
	b.PoolAll = all || rotary.eva && o.pool == "attention"
	if d.gated() {
		o.activation = "silu"
	}
	if !norm { // what stands there is the norm behind the pool
		delete(d.values, "image/norm/weight")
		delete(d.values, "image/norm/bias")
		if known := strings.Contains(architecture, "_pe_spatial_") || strings.Contains(architecture, "_pe_lang_"); !normLast && !known &&
			!(args.FinalNorm != nil && !*args.FinalNorm) && !(args.PostNorm != nil && !*args.PostNorm) {
			return o, "", fmt.Errorf("it has no %snorm.weight, and config.json has no final_norm = false in model_args: is it complete?", prefix)
		}
	}
	return o, unlike, nil
}

// timmTanh are parts of the names of timm's architectures whose activation is the approximation of GELU by tanh.
var timmTanh = []string{"so400m_patch16_siglip", "giantopt_patch16_siglip", "base_patch32_siglip",
	"large_patch16_siglip_512", "large_patch16_siglip_gap_512"}

// timmVision is the tensors of a vision transformer below a prefix.
func timmVision(prefix string) part {
	return part{
		prefixes: []string{prefix},
		marks:    []string{"patch_embed.proj.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight | blocks.0.attn.q_proj.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "patch_embed.proj.weight", flat},
			{"image/blocks/#/norm1/*", "blocks.#.norm1.*", nil},
			{"image/blocks/#/attn/qkv/weight", "blocks.#.attn.qkv.weight | blocks.#.attn.{q,k,v}_proj.weight", nil},
			{"image/blocks/#/attn/proj/weight", "blocks.#.attn.proj.weight", nil},
			{"image/blocks/#/norm2/*", "blocks.#.norm2.*", nil},
			{"image/blocks/#/mlp/fc1/weight", "blocks.#.mlp.fc1.weight | blocks.#.mlp.w12.weight | blocks.#.mlp.{fc1_g,fc1_x}.weight", nil},
			{"image/blocks/#/mlp/fc2/weight", "blocks.#.mlp.fc2.weight | blocks.#.mlp.w3.weight", nil},
		},
		may: []rule{
			{"image/patch_embed/bias", "patch_embed.proj.bias", nil},
			{"image/pos_embed", "{pos_embed,cls_token,reg_token} | {pos_embed,cls_token,register_tokens} | {pos_embed,cls_token,dist_token} | {pos_embed,cls_token} | {pos_embed,reg_token} | pos_embed", gridPositions},
			{"image/cls_token", "cls_token", token},
			{"image/registers", "{reg_token,pos_embed,cls_token} | {register_tokens,pos_embed,cls_token} | {dist_token,pos_embed,cls_token} | {reg_token,pos_embed} | reg_token", registerTokens},
			{"image/norm_pre/*", "norm_pre.*", nil},
			{"image/norm/*", "norm.* | fc_norm.*", nil},
			{"image/pool_norm/*", "fc_norm.*", nil},
			{"image/blocks/#/attn/qkv/bias", "blocks.#.attn.qkv.bias | blocks.#.attn.{q,k,v}_proj.bias | blocks.#.attn.{q,v}_bias | blocks.#.attn.{q,v}_proj.bias", qkvBias},
			{"image/blocks/#/attn/proj/bias", "blocks.#.attn.proj.bias", nil},
			{"image/blocks/#/mlp/fc1/bias", "blocks.#.mlp.fc1.bias | blocks.#.mlp.w12.bias | blocks.#.mlp.{fc1_g,fc1_x}.bias", nil},
			{"image/blocks/#/mlp/fc2/bias", "blocks.#.mlp.fc2.bias | blocks.#.mlp.w3.bias", nil},
			{"image/blocks/#/scale1", "blocks.#.ls1.gamma | blocks.#.gamma_1", vector},
			{"image/blocks/#/scale2", "blocks.#.ls2.gamma | blocks.#.gamma_2", vector},
			{"image/blocks/#/attn/q_norm/*", "blocks.#.attn.q_norm.*", nil},
			{"image/blocks/#/attn/k_norm/*", "blocks.#.attn.k_norm.*", nil},
			{"image/blocks/#/attn/norm/*", "blocks.#.attn.norm.*", nil},
			{"image/blocks/#/attn/relative", "blocks.#.attn.relative_position_bias_table", nil},
			{"image/blocks/#/mlp/norm/*", "blocks.#.mlp.norm.*", nil},
			{"image/pool/probe", "attn_pool.latent", probe},
			{"image/pool/qkv/*", "attn_pool.{q,kv}.*", queryFirst},
			{"image/pool/proj/*", "attn_pool.proj.*", nil},
			{"image/pool/norm/*", "attn_pool.norm.*", nil},
			{"image/pool/mlp/fc1/*", "attn_pool.mlp.fc1.*", nil},
			{"image/pool/mlp/fc2/*", "attn_pool.mlp.fc2.*", nil},
		},
		unneeded: []string{"head.*", "head_dist.*", "mask_token", "blocks.*.attn.relative_position_index"},
	}
}
