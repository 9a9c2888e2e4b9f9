package config

import (
	"slices"

	"github.com/geoalign/geoalign/config/section"
)

// Text is the text tower and the fusion layers above it.
type Text struct {
	Style        string  `toml:"style" fixed:"meaning"`                                // structure: empty (that of model.system) | bert (post-norm, eps 1e-12) | roberta (bert with eps 1e-5 and no token types) | mpnet (roberta with a bias of attention by distance) | clip (pre-norm, a word sees those before it, eps 1e-5, quick_gelu) | siglip (pre-norm, padding is read like words, eps 1e-6, gelu_tanh) | gru (gated recurrent units over embeddings of words, of model.text.gru)
	Layers       int     `toml:"layers" fixed:"model" max:"128"`                       // text layers
	FusionLayers int     `toml:"fusion_layers" read:"fusion" fixed:"model" max:"128"`  // layers with cross-attention to the image
	Width        int     `toml:"width" fixed:"model" max:"65536"`                      // width of a token, a multiple of heads; of gru that of a state
	Heads        int     `toml:"heads" read:"attention" fixed:"meaning" max:"1024"`    // attention heads
	MLP          int     `toml:"mlp" read:"attention" fixed:"model" max:"262144"`      // hidden width of a layer's MLP; 0: 4 x width
	Activation   string  `toml:"activation" read:"attention" fixed:"meaning"`          // of a layer's MLP: empty (that of style) | gelu | gelu_tanh | quick_gelu
	Eps          float64 `toml:"eps" read:"attention" fixed:"meaning" max:"0.1"`       // as model.image.eps; 0: that of style, 1e-12 without one, 1e-5 in model.system "clip"
	Pool         string  `toml:"pool" read:"text features" fixed:"meaning"`            // what stands for a text: empty (that of style) | class (the first token) | pooler (the first token through a linear layer and tanh, as BERT has it) | mean (of the words that are no padding) | end (the last token that is no padding; of siglip the last place, of gru the last state of each direction) | first_last (the mean of the words over the first and the last layer, as in SimCSE) | max (the largest value of each channel over the words) | gpo (the generalised pooling operator of VSE-infinity: learned weights for the sorted values) | esa (external space attention: a mean of each channel under weights of that channel)
	Positions    int     `toml:"positions" read:"attention" fixed:"model" max:"65536"` // size of the position table, at least data.tokens
	Freeze       bool    `toml:"freeze" read:"steps" fixed:"run"`                      // as model.image.freeze; fusion layers are trained all the same
	Dropout      float64 `toml:"dropout"`                                              // of hidden states and attention probabilities; of gru of embeddings and of what further layers read
	GRU          GRU     `toml:"gru" read:"gru"`
}

func (t *Text) defaults() {
	*t = Text{Layers: 6, FusionLayers: 6, Width: 768, Heads: 12, Positions: 512, Dropout: 0.1}
}

// PreNorm says whether the layers of a style have their norms first.
func (t Text) PreNorm() bool { return t.Style == StyleCLIP || t.Style == StyleSigLIP }

// Pooling returns what stands for a text: class, pooler, mean, end, max, gpo or esa.
func (t Text) Pooling() string {
	switch {
	case t.Pool != "":
		return t.Pool
	case t.PreNorm() || t.Style == StyleGRU:
		return "end"
	}
	return "class"
}

// ReadsClass says whether the first token stands for a text.
func (t Text) ReadsClass() bool { return t.Pooling() == "class" || t.Pooling() == "pooler" }

func (t *Text) check(k *checker, c *Config) {
	k.Positive("model.text.layers", "model.text.width")
	k.NotNegative("model.text.mlp", "model.text.fusion_layers")
	if t.Style != StyleGRU {
		k.Positive("model.text.heads", "model.text.positions")
		k.Require("model.text.width", t.Heads <= 0 || t.Width%t.Heads == 0, "must be a multiple of model.text.heads")
	}
	k.BelowOne("model.text.dropout")
	k.NotNegative("model.text.eps")
	k.OneOfOrEmpty("model.text.style", StyleBERT, StyleRoBERTa, StyleMPNet, StyleCLIP, StyleSigLIP, StyleGRU)
	k.OneOfOrEmpty("model.text.activation", "gelu", "gelu_tanh", "quick_gelu")
	k.OneOfOrEmpty("model.text.pool", "class", "pooler", "mean", "first_last", "end", "max", "gpo", "esa")
	k.Require("model.text.pool", !t.PreNorm() || t.Pooling() != "class", "must be mean, end, max, gpo or esa with a pre-norm style, whose first token stands for nothing")
	k.Require("model.text.pool", t.Style != StyleGRU || t.Pooling() != "class", "must be mean, end, max, gpo or esa with model.text.style \"gru\", whose first state has seen one word")
	k.Require("model.text.pool", t.Pool != PoolFirstLast || t.masksWords() || t.Style == StyleMPNet, "must be class, mean, end, max, gpo or esa with a model.text.style other than bert, roberta and mpnet",
		"first_last reads the states behind the first layer of these")
	k.Require("model.text.pool", t.Pool != PoolFirstLast || t.Layers > 0, "must be another without layers", "first_last reads the states behind two of them")
	k.Require("model.text.pool", t.Pool != "pooler" || t.masksWords() || t.Style == StyleMPNet, "must not be pooler with a model.text.style other than bert, roberta and mpnet", "they have no first token that stands for a text")
	has := c.Model.traits()
	k.Require("model.text.fusion_layers", t.FusionLayers == 0 || has.fusion || !has.words, "must be 0", c.Model.named()+" has no fusion layers")
	k.Require("model.text.fusion_layers", t.FusionLayers > 0 || !c.Has(section.FusedPairs) || !has.fusion, "must be > 0",
		"objective.itm and objective.mlm read the fusion layers")
	k.Require("model.text.style", !has.fusion || t.FusionLayers == 0 || t.masksWords(), "must be bert or roberta with fusion layers, which matching and masked language modelling read",
		"set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0, or choose another style")
	k.Training("model.text.freeze", !t.Freeze || !c.Model.Image.Freeze || c.Model.Head.Identity != "both" || t.FusionLayers > 0,
		"must be false where no other part is trained", "model.head.identity = \"both\" leaves nothing to train beside the towers")
	if space, err := c.Model.Head.Space(); err == nil && space.Tokens && has.words {
		const cure = "Multi(n,m) reads m class tokens: choose another model.head.topology"
		k.Require("model.text.style", t.masksWords(), "must be bert or roberta with several class tokens", cure)
		k.Require("model.text.pool", t.Pooling() == "class", "must be class with several class tokens", cure)
	}
}

// PoolFirstLast is the value of model.text.pool that reads two layers.
const PoolFirstLast = "first_last"

// masksWords says whether a style is of the layers that masked language modelling and fusion
// are made of.
func (t Text) masksWords() bool {
	return slices.Contains([]string{"", StyleBERT, StyleRoBERTa}, t.Style)
}
