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
	if t, ok := x.sides.Text.Tower.(encoders.TextTower); ok {
		if table, ok := t.Encoder.(encoders.BlockText); ok && table.Layers == 0 {
			return x.static(t, table)
		}
	}
	t, err := x.words()
	if err != nil {
		return err
	}
	b, ok := t.Encoder.(encoders.BERT)
	mode := map[encoders.Pool]string{"": "cls", encoders.PoolClass: "cls", encoders.PoolMean: "mean", encoders.PoolMax: "max",
		encoders.PoolEnd: "lasttoken", encoders.PoolWeighted: "weightedmean"}[t.Pool]
	switch {
	case !ok:
		return x.refuse("model.text.style", x.Config.Model.Text.Style, "its Transformer pools states of BERT, RoBERTa or MPNet, and its StaticEmbedding is of style block without layers", asHF, asONNX)
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
	modules := moduleList{}
	modules.add("Transformer", "")
	pool := object{"word_embedding_dimension": b.Width}
	for _, m := range []string{"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"} {
		pool["pooling_mode_"+m] = m == mode || m == mode+"_token" || m == mode+"_tokens"
	}
	x.json(modules.next("Pooling")+"/config.json", pool)
	x.behindPool(modules, layers)
	return nil
}

// static writes a table of words whose mean stands for a text as a StaticEmbedding.
func (x *job) static(t encoders.TextTower, b encoders.BlockText) error {
	const why = "its StaticEmbedding is the mean of a table of tokens"
	o := b.Block
	switch {
	case t.Pool != encoders.PoolMean:
		return x.refuse("model.text.pool", string(t.Pool), why, asONNX)
	case o.Places == encoders.PlacesLearned || o.Types > 0 || o.EmbedWidth > 0 || o.EmbedNorm || o.FinalNorm ||
		o.EmbedScale != 0 && o.EmbedScale != 1:
		return x.refuse("model.text.layers", b.Layers, why+" alone, and this tower has more than that", asONNX)
	case x.Tokenizer.Around() > 0:
		return x.refuse("data.template", x.Config.Data.Template, "its StaticEmbedding puts no tokens around a text", asONNX)
	}
	layers, err := x.denseLayers()
	if err != nil {
		return err
	}
	modules := moduleList{}
	folder := modules.next("StaticEmbedding")
	text, err := x.Tokenizer.Portable()
	if err != nil {
		return err
	}
	x.text(folder+"/tokenizer.json", text)
	if x.Tokenizer.KnownOnly() {
		x.note("unknown tokens are left out here, as in model2vec, and averaged there")
	}
	words := x.params["text/embeddings/word/weight"]
	words.Name = "embedding.weight"
	x.tensors(folder+"/model.safetensors", []weights.Param{words}, map[string]string{"format": "pt"})
	x.behindPool(modules, layers)
	return nil
}

// moduleList is a modules.json.
type moduleList struct{ list []object }

// add adds a module whose files lie in a folder.
func (m *moduleList) add(kind, folder string) {
	n := len(m.list)
	m.list = append(m.list, object{"idx": n, "name": fmt.Sprint(n), "path": folder,
		"type": "sentence_transformers.models." + kind})
}

// next adds a module with a folder of its own, which it returns.
func (m *moduleList) next(kind string) (folder string) {
	folder = fmt.Sprintf("%d_%s", len(m.list), kind)
	m.add(kind, folder)
	return folder
}

// behindPool writes what stands behind the vector of a text, and the files of the whole folder.
func (x *job) behindPool(modules moduleList, layers []denseLayer) {
	for _, l := range layers {
		folder := modules.next("Dense")
		weight := l.params[0]
		x.json(folder+"/config.json", object{"in_features": weight.Shape[1], "out_features": weight.Shape[0],
			"bias": len(l.params) > 1, "activation_function": l.activation})
		x.tensors(folder+"/model.safetensors", l.params, map[string]string{"format": "pt"})
	}
	if x.unit() {
		x.json(modules.next("Normalize")+"/config.json", object{})
	}
	x.json("modules.json", modules.list)
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
