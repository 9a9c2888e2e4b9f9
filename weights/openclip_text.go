package weights

import (
	"cmp"
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

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
		{"text/embeddings/class", "cls_emb", row},       // of CoCa
	},
	unneeded: []string{"attn_mask"},
}

// openCLIPTextFacts is what the text tower of open_clip has by its configuration: it reads as CLIP does, or as SigLIP
// does.
func (d *description) openCLIPTextFacts() (textFacts, error) {
	o := textFacts{style: "clip", pool: "end", eps: 1e-5, tokens: true}
	switch {
	case !d.hasSide("text"):
		return o, nil
	case d.has("text/embeddings/norm/weight"):
		return d.openCLIPHuggingFace()
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
	switch o.heads = said.Heads; {
	case said.Class && !d.has("text/embeddings/class"):
		return o, fmt.Errorf("%s has embed_cls = true in text_cfg, and the file has no cls_emb: do both belong together?", d.path)
	case d.has("text/embeddings/class") && !said.NoCausal:
		o.style, o.pool = "coca", "class"
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

// openCLIPParts are image parts with those of texts and scores. The text tower may be one of Hugging Face, below
// text.transformer: a RoBERTa, which has one type of tokens, or a BERT.
func openCLIPParts(f *File, image ...part) []part {
	text := openCLIPText
	if t, ok := f.Lookup("text.transformer.embeddings.token_type_embeddings.weight"); ok {
		if text = bertText("text.transformer."); len(t.Shape) > 0 && t.Shape[0] == 1 {
			text = robertaText("text.transformer.")
		}
	}
	return append(image, text, part{
		prefixes: []string{"text.proj."},
		marks:    []string{"weight"},
		needs:    []rule{{"text_proj/weight", "weight", nil}},
	}, part{
		prefixes: []string{"text.proj."},
		marks:    []string{"0.weight"},
		needs:    []rule{{"text_proj/dense/00/weight", "0.weight", nil}, {"text_proj/dense/01/weight", "2.weight", nil}},
	}, logitScale, logitBias(scalar))
}

// openCLIPPools are the pools of a text tower of Hugging Face in open_clip.
var openCLIPPools = map[string]string{"mean_pooler": "mean", "cls_pooler": "pooler", "cls_last_hidden_state_pooler": "class"}

// openCLIPHuggingFace is what a text tower of Hugging Face has. Its own configuration is not among the files.
func (d *description) openCLIPHuggingFace() (o textFacts, err error) {
	o = textFacts{style: "roberta", activation: "gelu", eps: 1e-5}
	if types, ok := d.values[tokenTypes]; ok && len(types.shape) == 2 {
		o.style, o.eps = "bert", 1e-12
	}
	d.assume("model.text.style", "model.text.activation")
	d.note("of the text tower open_clip's files have no sizes that no tensor shows: epsilon, activation and padding are taken to be those of %s", map[string]string{"roberta": "RoBERTa", "bert": "BERT"}[o.style])
	pooler := ""
	if d.openCLIP != nil {
		pooler = d.openCLIP.Model.Text.Pooler
	}
	if pooler == "" { // that of the class
		pooler = map[string]string{"roberta": "mean_pooler", "bert": "cls_pooler"}[o.style]
	}
	if d.openCLIP == nil {
		d.assume("model.text.pool")
		d.note("no file says what stands for a text: %s is assumed", pooler)
	}
	if o.pool = openCLIPPools[pooler]; o.pool == "" {
		return o, fmt.Errorf("%s has hf_pooler_type %q in text_cfg: mean_pooler, cls_pooler and cls_last_hidden_state_pooler are read", d.path, pooler)
	}
	if o.pool == "pooler" && !d.has("text/pooler/weight") { // then it takes the first token
		o.pool = "class"
	}
	return o, nil
}

// denseLayers takes the layers of a projection of several, which open_clip makes with GELU behind all but the last.
func (d *description) denseLayers(side string) error {
	at := func(i int, which string) string { return fmt.Sprintf("%s_proj/dense/%02d/%s", side, i, which) }
	for i := 0; d.has(at(i, "weight")); i++ {
		width, err := d.size(at(i, "weight"), 0)
		if err != nil {
			return err
		}
		l := encoders.DenseLayer{Side: side, Width: width, NoBias: !d.has(at(i, "bias"))}
		if d.has(at(i+1, "weight")) {
			l.Activation = "gelu"
		}
		d.layers = append(d.layers, l)
	}
	return nil
}
