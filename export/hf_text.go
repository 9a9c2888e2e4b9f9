package export

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// hfText writes the text tower as a class of its own, with its projection where the class has one.
func (x *job) hfText() error {
	t, err := x.words()
	if err != nil {
		return err
	}
	if err := x.tokenizerFiles(); err != nil {
		return err
	}
	if p, ok := t.Encoder.(encoders.PreNormText); ok {
		return x.hfPreNorm(t, p.Full())
	}
	return x.hfBERT(t, t.Encoder.(encoders.BERT).Full())
}

// hfBERT writes a post-norm tower.
func (x *job) hfBERT(t encoders.TextTower, b encoders.BERT) error {
	if b.FinalNorm {
		return x.refuse("model.text.style", x.Config.Model.Text.Style,
			"its classes have no norm behind the last layer, as the text tower of model.system \"clip\" has without a style", asONNX)
	}
	if t.Pool == encoders.PoolEnd && !x.bare() {
		return x.refuse("model.text.pool", string(t.Pool),
			"its classes of BERT read the first token, and programs around them the mean", asONNX)
	}
	pad := int(x.Tokenizer.PadID())
	config := object{
		"model_type": "bert", "vocab_size": b.Vocab, "hidden_size": b.Width, "num_hidden_layers": b.Layers,
		"num_attention_heads": b.Heads, "intermediate_size": b.MLP, "hidden_act": activationHF[b.Activation],
		"layer_norm_eps": number(b.Eps), "max_position_embeddings": b.Positions, "type_vocab_size": 2,
		"pad_token_id": pad,
	}
	if around := []int32{x.Tokenizer.ClsID(), x.Tokenizer.SepID()}; b.NoTokenType &&
		slices.Contains(around, int32(pad)) {
		return x.refuse("data.vocab", x.Config.Data.Vocab,
			"its RoBERTa and MPNet number no position where the token of padding stands, and this tokenizer puts it around every text", asONNX)
	}
	class, naming, mlm := "BertModel", weights.Naming{Family: "bert"}, "BertForMaskedLM"
	if b.NoTokenType {
		class, mlm = "RobertaModel", "RobertaForMaskedLM"
		naming = weights.Naming{Family: "roberta", Padding: pad + 1}
		config["model_type"], config["type_vocab_size"], config["max_position_embeddings"] = "roberta", 1,
			b.Positions+pad+1
	}
	if b.Relative > 0 {
		if pad != 1 {
			return x.refuse("data.vocab", x.Config.Data.Vocab,
				"its MPNet numbers positions by padding with the id 1, and this vocabulary pads with another", asONNX)
		}
		class, mlm, naming.Family = "MPNetModel", "MPNetForMaskedLM", "mpnet"
		config["model_type"], config["relative_attention_num_buckets"] = "mpnet", b.Relative
		delete(config, "type_vocab_size")
	}
	if t.Pool == encoders.PoolMean && !x.bare() {
		x.json("1_Pooling/config.json", object{"word_embedding_dimension": b.Width, "pooling_mode_cls_token": false,
			"pooling_mode_mean_tokens": true})
	}
	_, hasHead := x.params["text/mlm/bias"]
	if hasHead && x.sides.Fusion == nil && !x.bare() {
		class = mlm
	}
	fusion := b.FusionLayers > 0
	params := x.below(func(name string) bool {
		return (fusion || x.bare()) && strings.HasPrefix(name, "text/mlm/") || fusion && layerOf(name) >= b.Layers
	}, "text/")
	if fusion {
		x.note("the %d fusion layers are left out", b.FusionLayers)
	}
	return x.pretrained(class, naming, params, config)
}

// layerOf is the number of the text layer that a parameter is of, -1 for none.
func layerOf(name string) int {
	rest, ok := strings.CutPrefix(name, "text/layers/")
	if !ok || len(rest) < 2 {
		return -1
	}
	n := 0
	for _, c := range rest[:strings.IndexByte(rest+"/", '/')] {
		n = 10*n + int(c-'0')
	}
	return n
}

// hfPreNorm writes a pre-norm tower.
func (x *job) hfPreNorm(t encoders.TextTower, p encoders.PreNormText) error {
	class, config, err := x.hfWords(t, p)
	if err != nil {
		return err
	}
	params := x.below(nil, "text/")
	switch plain := x.plainHead(x.sides.Text.Head); {
	case !p.Causal:
		params = x.below(nil, "text/", "text_proj/")
		if params, err = x.siglipHead(params); err != nil {
			return err
		}
	case plain:
		class, config["projection_dim"] = "CLIPTextModelWithProjection", x.sides.Text.Head.Dimension()
		params = x.below(nil, "text/", "text_proj/")
	}
	return x.pretrained(class, weights.Naming{Family: strings.SplitN(config["model_type"].(string), "_", 2)[0]}, params,
		config)
}

// siglipHead adds the bias that SigLIP's projection of texts has.
func (x *job) siglipHead(params []weights.Param) ([]weights.Param, error) {
	if err := x.oneLayer(asONNX); err != nil {
		return nil, err
	}
	h := projection(x.sides.Text.Head)
	if h == nil {
		return nil, x.refuse("model.head.identity", x.Config.Model.Head.Identity, "its SigLIP projects texts", asONNX)
	}
	if !h.Space.One() {
		return nil, x.refuse("model.head.topology", x.Config.Model.Head.Topology,
			"its SigLIP compares unit vectors of one sphere", asONNX)
	}
	if h.NoBias {
		params = append(params, constant("text_proj/bias", 0, h.Dimension()))
	}
	return params, nil
}

// hfWords is the class and the configuration of a pre-norm tower.
func (x *job) hfWords(t encoders.TextTower, p encoders.PreNormText) (class string, config object, err error) {
	tok := x.Tokenizer
	config = object{
		"model_type": "clip_text_model", "vocab_size": p.Vocab, "hidden_size": p.Width, "num_hidden_layers": p.Layers,
		"num_attention_heads": p.Heads, "intermediate_size": p.MLP, "hidden_act": activationHF[p.Activation],
		"layer_norm_eps": number(p.Eps), "max_position_embeddings": p.Positions, "pad_token_id": tok.PadID(),
	}
	if t.Pool != encoders.PoolEnd {
		return "", nil, x.refuse("model.text.pool", string(t.Pool),
			"its classes of CLIP and SigLIP read the end of a text", asONNX)
	}
	if !p.Causal {
		config["model_type"], config["projection_size"] = "siglip_text_model", x.sides.Text.Head.Dimension()
		if x.Config.Data.Tokens != p.Positions {
			x.note("texts are padded to %d tokens (data.tokens), as the tokenizer's files say: padding=\"max_length\"",
				x.Config.Data.Tokens)
		}
		return "SiglipTextModel", config, nil
	}
	end, err := x.endOfText()
	if err != nil {
		return "", nil, err
	}
	config["eos_token_id"] = end
	if cls := tok.ClsID(); cls >= 0 {
		config["bos_token_id"] = cls
	}
	if end == 2 && int(end) != tok.Size()-1 {
		return "", nil, x.refuse("data.vocab", x.Config.Data.Vocab,
			"its CLIP takes the largest id for the end of a text where that has the id 2", asONNX)
	}
	return "CLIPTextModel", config, nil
}

// endOfText is the token by which CLIP finds the end of a text.
func (x *job) endOfText() (int32, error) {
	if x.Tokenizer.Template() != "file" || x.Tokenizer.SepID() < 0 {
		return 0, x.refuse("data.template", x.Config.Data.Template,
			"CLIP finds the end of a text by a token, which this tokenizer does not put there", asONNX)
	}
	return x.Tokenizer.SepID(), nil
}
