package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// albef writes towers, fusion layers and heads under the names of ALBEF's checkpoints, with twins and queues where
// there are any.
func (x *job) albef() error {
	if err := x.twoSided("its checkpoints have both towers", asHF, asONNX); err != nil {
		return err
	}
	if s := x.Config.Model.System; s != "albef" {
		return x.refuse("model.system", s, "it has a text tower with heads that have a bias, of model.system \"albef\"",
			asHF, asONNX)
	}
	v, err := x.vit()
	if err != nil {
		return err
	}
	t, err := x.words()
	if err != nil {
		return err
	}
	b, ok := t.Encoder.(encoders.BERT)
	b = b.Full()
	im, tx := x.Config.Model.Image, x.Config.Model.Text
	switch {
	case kind(v) != "vit" || v.Eps != 1e-6 || v.Registers > 0 || v.Activation != "gelu":
		return x.refuse("model.image.style", im.Style,
			"its image tower is that of style vit with GELU and no registers", asHF, asTimm, asONNX)
	case v.Pool != encoders.PoolClass:
		return x.refuse("model.image.pool", string(v.Pool), "it reads the class token", asTimm, asONNX)
	case !ok || b.NoTokenType || b.Relative > 0 || b.Activation != "gelu":
		return x.refuse("model.text.style", tx.Style, "its text tower is that of style bert with GELU", asHF, asONNX)
	case t.Pool != encoders.PoolClass && t.Pool != "":
		return x.refuse("model.text.pool", string(t.Pool), "it reads the first token", asHF, asONNX)
	case x.Config.Pictures() > 1:
		return x.refuse("model.text.fusion_layers", tx.FusionLayers,
			"its fusion layers read one picture of a text, and those of objective.nlvr and objective.assignment read two", asHF+" "+oneSide, asONNX)
	case x.Config.Model.Head.Identity != "":
		return x.refuse("model.head.identity", x.Config.Model.Head.Identity, "it projects both sides", asHF, asONNX)
	}
	if err := x.comparable(asONNX); err != nil {
		return err
	}
	names := []string{"image/", "text/", "image_proj/", "text_proj/", "itm_head/"}
	params := x.below(nil, names...)
	params = append(params, x.temperature())
	for _, p := range x.Twins {
		name := strings.TrimPrefix(p.Name, "momentum/")
		if strings.HasPrefix(p.Name, "queue/") ||
			slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(name, s) }) {
			params = append(params, p)
		}
	}
	list, err := weights.Renamed(params, weights.Naming{Family: "albef"})
	if err != nil {
		return err
	}
	x.class = "ALBEF"
	x.tensors("model.safetensors", list, map[string]string{"format": "pt"})
	words := object{
		"architectures": []string{"BertForMaskedLM"}, "model_type": "bert", "vocab_size": b.Vocab,
		"hidden_size": b.Width, "num_hidden_layers": b.Layers + b.FusionLayers, "num_attention_heads": b.Heads,
		"intermediate_size": b.MLP, "hidden_act": "gelu", "layer_norm_eps": number(b.Eps),
		"max_position_embeddings": b.Positions, "type_vocab_size": 2, "pad_token_id": x.Tokenizer.PadID(),
		"fusion_layer": b.Layers, "encoder_width": v.Width, "attention_probs_dropout_prob": tx.Dropout,
		"hidden_dropout_prob": tx.Dropout,
	}
	x.json("config_bert.json", words)
	x.json("config.json", object{
		"model_type": "albef", "text_config": words,
		"vision_config": object{"hidden_size": v.Width, "num_hidden_layers": v.Depth, "num_attention_heads": v.Heads, "image_size": v.Size, "patch_size": v.Patch, "num_channels": 3, "layer_norm_eps": number(v.Eps)},
	})
	x.load = fmt.Sprintf("torch.save({\"model\": safetensors.torch.load_file(%q)}, \"albef.pth\")",
		x.Out+"/model.safetensors")
	x.leftOut(params)
	return x.tokenizerFiles()
}
