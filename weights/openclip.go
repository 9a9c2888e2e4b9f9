package weights

import (
	"cmp"
	"errors"
	"fmt"
)

// openCLIP is CLIP as open_clip and OpenAI's code name it, with the text tower at the top or below text.
var openCLIP = family{
	name:     "open_clip",
	types:    []string{"open_clip"},
	parts:    []part{openCLIPImage(vector), openCLIPText, logitScale, logitBias(scalar)},
	unneeded: openCLIPUnneeded,
	describe: func(d *description) error {
		d.smooth = true
		o := imageFacts{style: "clip", pool: "class", eps: 1e-5, activation: d.openCLIPActivation("image"),
			preprocess: preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}}
		if d.openCLIP != nil && d.has("image/pos_embed") {
			said := d.openCLIP.Model.Vision
			o.heads, o.said = d.values["image/pos_embed"].shape[1]/max(1, cmp.Or(said.HeadWidth, 64)), said.Norm.Eps
			switch attention := said.Attention != nil && said.Attention != false; {
			case !attention && (said.Pool == "" || said.Pool == "tok"): // whose norm may be behind the pool as well
			case !attention && said.Pool == "avg" && !said.NormLast:
				o.pool = "mean"
			default:
				d.differs("the image tower has pool_type = %q, final_ln_after_pool = %v and attentional_pool = %v in vision_cfg: no style here pools so (\"tok\", or \"avg\" and false, and no attentional_pool)",
					cmp.Or(said.Pool, "tok"), said.NormLast, attention)
			}
		}
		return d.openCLIPTowers(d.vision(o))
	},
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

// openCLIPText is the text tower of open_clip, at the top of the names or below text.
var openCLIPText = part{
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
	may: []rule{
		{"text_proj/weight", "text_projection | text_projection.weight", projection},
		{"text_proj/bias", "text_projection.bias", nil}, // of SigLIP
	},
	unneeded: []string{"attn_mask"},
}

var openCLIPUnneeded = []string{"input_resolution", "context_length", "vocab_size"}

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
		if d.name == openCLIP.name || d.name == openCLIPTimm.name {
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
	if d.has("image_proj/bias") || d.has("text_proj/bias") && text.style == "clip" {
		return errors.New("its projections have a bias, and those of a dual encoder here have none but SigLIP's of texts")
	}
	_, patches := d.file.Lookup("visual.class_embedding")
	_, before := d.file.Lookup("visual.ln_pre.weight")
	if patches && !before && !d.hasSide("image") {
		d.note("the image tower is not read: it has no norm before its blocks (no_ln_pre), and that of style clip has one")
	}
	if d.openCLIP != nil {
		m := d.openCLIP.Model
		if m.Vision.Timm != "" && !d.hasSide("image") {
			d.note("the image tower is %s of timm, which is not read: vision transformers with the tensors of timm's vit_base_patch16_224 are", m.Vision.Timm)
		}
		if m.Text.HuggingFace != "" && d.depth("text/layers/") == 0 {
			d.note("the text tower is %s of Hugging Face inside open_clip, which is not read: give it as [init.text] from its own files", m.Text.HuggingFace)
		}
	}
	return d.sides(image, d.words(text))
}

// openCLIPTextFacts is what the text tower of open_clip has by its configuration: it reads as CLIP does, or as SigLIP
// does.
func (d *description) openCLIPTextFacts() (textFacts, error) {
	o := textFacts{style: "clip", pool: "end", eps: 1e-5, tokens: true}
	if d.depth("text/layers/") == 0 {
		return o, nil
	}
	o.activation = d.openCLIPActivation("text")
	var said openCLIPWords
	if d.openCLIP != nil {
		said = d.openCLIP.Model.Text
	} else if said.NoCausal = d.has("siglip/bias"); said.NoCausal {
		said.Pool, said.Norm.Eps = "last", 1e-6
		d.assume("model.text.style")
		d.note("no file says how words see each other: as in SigLIP is assumed, whose bias of scores is there")
	}
	if said.Class {
		d.differs("the text tower has embed_cls = true in text_cfg: no style here puts a token behind a text that stands for it")
	}
	switch o.heads = said.Heads; {
	case !said.NoCausal && (said.Pool == "" || said.Pool == "argmax" || said.Pool == "eos"):
	case said.NoCausal && said.Pool == "last" && !said.PadMask:
		o.style, o.eps = "siglip", 1e-6
	default:
		return o, fmt.Errorf("its text tower has no_causal_mask = %v, use_pad_mask = %v and pool_type = %q in text_cfg: no style here reads texts so (clip: false, false, \"argmax\"; siglip: true, false, \"last\")",
			said.NoCausal, said.PadMask, said.Pool)
	}
	o.said = cmp.Or(said.Norm.Eps, 1e-5)
	return o, nil
}

// openCLIPTimm is a dual encoder of open_clip whose image tower is a vision transformer of timm, such as its SigLIP.
var openCLIPTimm = family{
	name:  "open_clip_timm",
	types: []string{"open_clip"},
	below: "visual.trunk.blocks.",
	parts: []part{
		timmVision("visual.trunk."),
		{
			prefixes: []string{"visual.head.proj.", "visual.trunk.head."},
			marks:    []string{"weight"},
			needs:    []rule{{"image_proj/weight", "weight", nil}},
			may:      []rule{{"image_proj/bias", "bias", nil}},
		},
		openCLIPText, logitScale, logitBias(scalar),
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
		if _, mlp := d.file.Lookup("visual.head.mlp.fc1.weight"); mlp {
			d.differs("images are projected by an MLP (visual.head.mlp), and by one linear layer in a dual encoder here")
		}
		// the size of images is that of the tower, and open_clip's statistics are CLIP's where it says none
		if d.openCLIP != nil {
			o.preprocess = preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}
		}
		return d.openCLIPTowers(d.vision(o))
	},
}
