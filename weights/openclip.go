package weights

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/encoders"
)

// openCLIP is CLIP as open_clip and OpenAI's code name it, with the text tower at the top or below text.
var openCLIP = family{
	name:  "open_clip",
	types: []string{"open_clip"},
	parts: []part{openCLIPImage(vector), openCLIPText, logitScale, logitBias(scalar)},
	findFor: func(f *File, _ *facts) []part {
		if _, ok := f.Lookup("visual.attn_pool.query"); ok {
			return openCLIPParts(f, cocaImage())
		}
		return openCLIPParts(f, openCLIPImage(vector))
	},
	unneeded: openCLIPUnneeded,
	describe: func(d *description) error {
		d.smooth = true
		o := imageFacts{style: "clip", pool: "class", eps: 1e-5, activation: d.openCLIPActivation("image"),
			preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}}
		if d.openCLIP != nil && d.has("image/pos_embed") {
			said := d.openCLIP.Model.Vision
			o.heads, o.said = d.values["image/pos_embed"].shape[1]/max(1, cmp.Or(said.HeadWidth, 64)), said.Norm.Eps
			switch attention := said.Attention != nil && said.Attention != false; {
			case d.has("image/pool/probe") && (said.Pool == "" || said.Pool == "tok"):
			case !attention && (said.Pool == "" || said.Pool == "tok"): // whose norm may be behind the pool as well
			case !attention && said.Pool == "avg" && !said.NormLast:
				o.pool = "mean"
			default:
				d.differs("the image tower has pool_type = %q, final_ln_after_pool = %v and attentional_pool = %v in vision_cfg: no style here pools so (\"tok\", or \"avg\" and false, and no attentional_pool)",
					cmp.Or(said.Pool, "tok"), said.NormLast, attention)
			}
		}
		if d.has("image/pool/probe") {
			width, err := d.size("image/pool/probe", 1)
			if err != nil {
				return err
			}
			o.block, o.style, o.pool, o.said, o.eps = plainBlock(), encoders.StyleBlock, "attention", cmp.Or(o.said, o.eps), 1e-6
			o.block.PoolAll, o.block.PoolHeads, o.block.PoolWidth = true, 8, width
			if d.openCLIP != nil {
				o.block.PoolHeads = cmp.Or(d.openCLIP.Model.Vision.PoolHeads, 8)
			}
		}
		if n := len(d.file.below("text_decoder.").tensors); n > 0 {
			d.note("its decoder of captions (text_decoder., %d tensors) is left out: both encoders are read", n)
		}
		return d.openCLIPTowers(d.vision(o))
	},
}

// cocaImage is the image tower of CoCa: that of CLIP with a pool by attention, of which the first query stands for an
// image, before the last norm.
func cocaImage() part {
	p := openCLIPImage(vector)
	p.marks = append(p.marks, "attn_pool.query")
	p.needs = append(slices.DeleteFunc(p.needs, func(r rule) bool { return r.ours == "image/norm/*" }), []rule{
		{"image/pool/probe", "attn_pool.query", firstRow}, {"image/pool/query_norm/*", "attn_pool.ln_q.*", nil},
		{"image/pool/token_norm/*", "attn_pool.ln_k.*", nil}, {"image/pool_norm/*", "ln_post.*", nil},
		{"image/pool/q/weight", "attn_pool.attn.q_proj_weight | attn_pool.attn.in_proj_weight", queryRows},
		{"image/pool/q/bias", "attn_pool.attn.in_proj_bias", queryRows},
		{"image/pool/kv/weight", "attn_pool.attn.{k,v}_proj_weight | attn_pool.attn.in_proj_weight", keyRows},
		{"image/pool/kv/bias", "attn_pool.attn.in_proj_bias", keyRows},
		{"image/pool/proj/*", "attn_pool.attn.out_proj.*", nil},
	}...)
	return p
}

// row is a vector as a matrix of one row, firstRow that of a matrix. queryRows and keyRows are the rows of queries, and
// those of keys and values, of a tensor of all three; what has no others is left as it is.
var (
	row = &shaping{func(in []*Tensor) (value, error) { return reshaped(in[0], 1, in[0].Len()), nil },
		func(p Param, names []string, _ Naming) []Param { return p.as(names[0], p.Shape[1]) }}
	firstRow  = &shaping{join: rowsOf(func(shape []int) (from, to int) { return 0, 1 })}
	queryRows = &shaping{join: rowsOf(func(shape []int) (from, to int) {
		if len(shape) == 2 && shape[0] == shape[1] {
			return 0, shape[0]
		}
		return 0, shape[0] / 3
	})}
	keyRows = &shaping{join: func(in []*Tensor) (value, error) {
		if len(in) == 2 {
			return rows(in)
		}
		return rowsOf(func(shape []int) (from, to int) { return shape[0] / 3, shape[0] })(in)
	}}
)

// rowsOf takes rows of a tensor by its shape.
func rowsOf(of func(shape []int) (from, to int)) func(in []*Tensor) (value, error) {
	return func(in []*Tensor) (value, error) {
		t := in[0]
		if len(t.Shape) == 0 || t.Len() == 0 {
			return value{}, odd(t, "rows")
		}
		from, to := of(t.Shape)
		width, shape := t.Len()/t.Shape[0], slices.Clone(t.Shape)
		shape[0] = to - from
		return value{shape: shape, read: func(dst []float32) error { return t.Read(dst, from*width) }}, nil
	}
}

// openCLIPImage is the vision transformer of open_clip with class tokens in a shape.
func openCLIPImage(classes *shaping) part {
	return part{
		prefixes: []string{"visual."},
		marks:    []string{"conv1.weight", "class_embedding", "ln_pre.weight"},
		needs: []rule{
			{"image/patch_embed/weight", "conv1.weight", flat},
			{"image/cls_token", "class_embedding", classes},
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
	}
}

var openCLIPUnneeded = []string{"input_resolution", "context_length", "vocab_size", "text_decoder.*"}

// openCLIPActivation is that of a tower of open_clip.
func (d *description) openCLIPActivation(side string) string {
	if d.openCLIP == nil {
		d.assume("model." + side + ".activation")
		d.note("no file says whether the activation is gelu or quick_gelu, which OpenAI's models have: gelu is assumed")
		return "gelu"
	}
	layers := d.openCLIP.Model.Vision.openCLIPLayers
	if side == "text" {
		layers = d.openCLIP.Model.Text.openCLIPLayers
	}
	switch {
	case d.openCLIP.Model.QuickGELU:
		return "quick_gelu"
	case layers.Activation.Approximate == "tanh":
		return "gelu_tanh"
	}
	return "gelu"
}

// clean is how open_clip cleans texts before its tokenizer reads them, by the names of its own configuration; empty for
// other families.
func (d *description) clean() (string, error) {
	if d.openCLIP == nil {
		if slices.Contains(d.types, "open_clip") && d.hasSide("text") && !d.has("text/embeddings/norm/weight") {
			return "lower", nil
		}
		return "", nil
	}
	said := d.openCLIP.Model.Text
	if said.Reads.Strip {
		d.differs("the tokenizer has strip_sep_token = true in tokenizer_kwargs, and the token behind a text is read here")
	}
	switch clean := said.Reads.Clean; clean {
	case "":
		if said.Tokenizer == "" {
			return "lower", nil
		}
		return "whitespace", nil
	case "whitespace", "lower", "canonicalize":
		return clean, nil
	default:
		return "", fmt.Errorf("%s has tokenizer_kwargs.clean = %q in text_cfg: whitespace, lower and canonicalize are read", d.path, clean)
	}
}

// openCLIPTowers sets the keys of a dual encoder of open_clip with an image tower.
func (d *description) openCLIPTowers(image func() error) error {
	if d.has("siglip/bias") { // the scores are those of SigLIP's loss
		delete(d.values, "temperature")
		delete(d.values, "logit_scale")
	}
	text, err := d.openCLIPTextFacts()
	if err != nil {
		return err
	}
	for _, side := range []string{"image", "text"} {
		if err := d.denseLayers(side); err != nil {
			return err
		}
	}
	if d.has("image_proj/bias") || d.has("text_proj/bias") && text.style == "clip" {
		return errors.New("its projections have a bias, and those of a dual encoder here have none but SigLIP's of texts")
	}
	_, patches := d.file.Lookup("visual.class_embedding")
	_, before := d.file.Lookup("visual.ln_pre.weight")
	var said openCLIPConfig
	if d.openCLIP != nil {
		said = *d.openCLIP
	}
	switch timm, visual := said.Model.Vision.Timm, d.file.below("visual."); {
	case d.hasSide("image"):
	case patches && !before:
		d.note("the image tower is not read: it has no norm before its blocks (no_ln_pre), and that of style clip has one")
	case unreadKind(timm) != "":
		d.note("the image tower is not read: timm_model_name is %s", unreadKind(timm))
	case timm != "":
		d.note("the image tower is %s of timm, which is not read: vision transformers with the tensors of timm's vit_base_patch16_224 are", timm)
	case len(visual.tensors) > 0:
		d.note("the image tower is not read: its tensors are of none that is (visual.%s)", visual.Names()[0])
	}
	if name := said.Model.Text.HuggingFace; name != "" && !d.hasSide("text") {
		d.note("the text tower is %s of Hugging Face inside open_clip, and BERT, RoBERTa and XLM-RoBERTa are read: give it as [init.text] from its own files", name)
	}
	return d.sides(image, d.words(text))
}

// openCLIPTimm is a dual encoder of open_clip whose image tower is a vision transformer of timm, such as its SigLIP.
var openCLIPTimm = family{
	name:  "open_clip_timm",
	types: []string{"open_clip"},
	below: "visual.trunk.blocks.",
	parts: []part{timmVision("visual.trunk."), openCLIPTrunkHead, openCLIPText, logitScale, logitBias(scalar)},
	findFor: func(f *File, _ *facts) []part {
		return openCLIPParts(f, timmVision("visual.trunk."), openCLIPTrunkHead, openCLIPTrunkMLP)
	},
	unneeded: openCLIPUnneeded,
	describe: func(d *description) error {
		var said openCLIPVision
		pool := ""
		if d.openCLIP != nil {
			if said, pool = d.openCLIP.Model.Vision, "avg"; said.TimmPool != nil {
				pool = *said.TimmPool
			}
		}
		o, unlike, err := d.timmFacts("visual.trunk.", said.Timm, pool)
		if err != nil {
			return err
		}
		if unlike != "" {
			d.differs("%s", unlike)
		}
		// the size of images is that of the tower, and open_clip's statistics are CLIP's where it says none
		if d.openCLIP != nil {
			o.preprocess = preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}
		}
		return d.openCLIPTowers(d.vision(o))
	},
}

// openCLIPTrunkHead and openCLIPTrunkMLP are the projections of a tower of timm.
var (
	openCLIPTrunkHead = part{
		prefixes: []string{"visual.head.proj.", "visual.trunk.head."},
		marks:    []string{"weight"},
		needs:    []rule{{"image_proj/weight", "weight", nil}},
		may:      []rule{{"image_proj/bias", "bias", nil}},
	}
	openCLIPTrunkMLP = part{
		prefixes: []string{"visual.head.mlp."},
		marks:    []string{"fc1.weight"},
		needs:    []rule{{"image_proj/dense/00/*", "fc1.*", nil}, {"image_proj/dense/01/weight", "fc2.weight", nil}},
		may:      []rule{{"image_proj/dense/01/bias", "fc2.bias", nil}},
	}
)
