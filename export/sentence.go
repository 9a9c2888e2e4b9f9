package export

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// sentence writes the text tower with its pool and its head as the modules of sentence-transformers.
func (x *job) sentence() error {
	if x.sides.Views || x.Side == "image" {
		return x.refuse("model.system", x.Config.Model.System, "it has text towers alone", asHF, asONNX)
	}
	x.Side = "text"
	t, err := x.words()
	if err != nil {
		return err
	}
	b, ok := t.Encoder.(encoders.BERT)
	mode := map[encoders.Pool]string{"": "cls", encoders.PoolClass: "cls", encoders.PoolMean: "mean", encoders.PoolMax: "max",
		encoders.PoolEnd: "lasttoken", encoders.PoolWeighted: "weightedmean"}[t.Pool]
	switch {
	case !ok:
		return x.refuse("model.text.style", x.Config.Model.Text.Style, "its Transformer pools states of BERT, RoBERTa or MPNet", asHF, asONNX)
	case mode == "":
		return x.refuse("model.text.pool", string(t.Pool), "its Pooling has cls, mean, max, lasttoken and weightedmean", asONNX)
	}
	layers, err := x.denseLayers()
	if err != nil {
		return err
	}
	if err := x.tokenizerFiles(); err != nil {
		return err
	}
	if err := x.hfBERT(t, b.Full()); err != nil {
		return err
	}
	modules := []object{{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}}
	add := func(kind string) (folder string) {
		n := len(modules)
		folder = fmt.Sprintf("%d_%s", n, kind)
		modules = append(modules, object{"idx": n, "name": fmt.Sprint(n), "path": folder,
			"type": "sentence_transformers.models." + kind})
		return folder
	}
	pool := object{"word_embedding_dimension": b.Width}
	for _, m := range []string{"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"} {
		pool["pooling_mode_"+m] = m == mode || m == mode+"_token" || m == mode+"_tokens"
	}
	x.json(add("Pooling")+"/config.json", pool)
	for _, l := range layers {
		folder := add("Dense")
		weight := l.params[0]
		x.json(folder+"/config.json", object{"in_features": weight.Shape[1], "out_features": weight.Shape[0],
			"bias": len(l.params) > 1, "activation_function": l.activation})
		x.tensors(folder+"/model.safetensors", l.params, map[string]string{"format": "pt"})
	}
	if x.unit() {
		x.json(add("Normalize")+"/config.json", object{})
	}
	x.json("modules.json", modules)
	d := x.Config.Data
	x.json("sentence_bert_config.json", object{"max_seq_length": d.Tokens, "do_lower_case": d.Clean == data.CleanLower || d.Clean == data.CleanLowercase})
	prompts := object{}
	for _, item := range d.Prompts {
		name, text, _ := strings.Cut(item, "=")
		prompts[name] = text
	}
	about := object{"prompts": prompts, "default_prompt_name": nil, "similarity_fn_name": "cosine"}
	if d.Prompt != "" {
		about["default_prompt_name"] = d.Prompt
	}
	x.json("config_sentence_transformers.json", about)
	x.class, x.load = "SentenceTransformer", fmt.Sprintf("sentence_transformers.SentenceTransformer(%q)", x.Out)
	return nil
}

// unit says whether features are of length 1. Those of several spheres are refused before.
func (x *job) unit() bool {
	s, err := x.Config.Model.Head.Space()
	return err == nil && !s.Euclid
}

// denseLayer is a Dense module.
type denseLayer struct {
	params     []weights.Param // linear.weight, and linear.bias where there is one
	activation string          // a class of PyTorch
}

// activationTorch is the class of an activation of a head.
var activationTorch = map[string]string{"": "torch.nn.modules.linear.Identity", "tanh": "torch.nn.modules.activation.Tanh",
	"gelu": "torch.nn.modules.activation.GELU", "relu": "torch.nn.modules.activation.ReLU",
	"silu": "torch.nn.modules.activation.SiLU"}

// denseLayers are the layers of the head of texts.
func (x *job) denseLayers() (list []denseLayer, err error) {
	space, err := x.Config.Model.Head.Space()
	if err != nil {
		return nil, err
	}
	if !space.Euclid && !space.One() {
		return nil, x.refuse("model.head.topology", x.Config.Model.Head.Topology, "its vectors are of length 1 or as they come",
			asONNX)
	}
	add := func(name, activation string) {
		l := denseLayer{activation: activationTorch[activation]}
		for _, which := range []string{"weight", "bias"} {
			if p, ok := x.params[x.sides.Text.Proj+"/"+name+which]; ok {
				l.params = append(l.params, weights.Param{Name: "linear." + which, Shape: p.Shape, Read: p.Read})
			}
		}
		if len(l.params) > 0 {
			list = append(list, l)
		}
	}
	switch h := x.sides.Text.Head.(type) {
	case encoders.Projection:
		if !h.Identity {
			add("", h.Activation)
		}
	case encoders.Dense:
		for i, l := range h.Layers {
			add(fmt.Sprintf("dense/%02d/", i), l.Activation)
		}
	case encoders.MLP:
		add("shared/", "") // of a tower of another width
		for i := range h.Layers {
			activation := h.Activation
			if activation == "" {
				activation = "gelu"
			}
			add(fmt.Sprintf("fc%d/", i+1), activation)
		}
		add(fmt.Sprintf("fc%d/", h.Layers+1), "")
		if h.LayerNorm || h.Residual {
			return nil, x.refuse("model.head.style", x.Config.Model.Head.Style, "its Dense modules have no norms and skips", asONNX)
		}
	default:
		return nil, fmt.Errorf("the head of texts is a %T, which no form has: use %s", h, asGeoalign)
	}
	return list, nil
}
