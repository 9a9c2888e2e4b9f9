package config

// Text is the BERT text tower and the fusion layers above it.
type Text struct {
	Layers       int     `toml:"layers" fixed:"model" max:"128"`                      // text layers
	FusionLayers int     `toml:"fusion_layers" read:"fusion" fixed:"model" max:"128"` // layers with cross-attention to the image
	Width        int     `toml:"width" fixed:"model" max:"65536"`                     // width of a token, a multiple of heads
	Heads        int     `toml:"heads" fixed:"meaning" max:"1024"`                    // attention heads
	MLP          int     `toml:"mlp" fixed:"model" max:"262144"`                      // hidden width of a layer's MLP; 0: 4 x width
	Positions    int     `toml:"positions" fixed:"model" max:"65536"`                 // size of the position table, at least data.tokens
	Dropout      float64 `toml:"dropout"`                                             // of hidden states and attention probabilities
}

func (t *Text) defaults() {
	*t = Text{Layers: 6, FusionLayers: 6, Width: 768, Heads: 12, Positions: 512, Dropout: 0.1}
}

func (t *Text) check(k *checker, c *Config) {
	k.positive("model.text.layers", "model.text.width", "model.text.heads", "model.text.positions")
	k.notNegative("model.text.mlp", "model.text.fusion_layers")
	k.require("model.text.width", t.Heads <= 0 || t.Width%t.Heads == 0, "must be a multiple of model.text.heads")
	k.belowOne("model.text.dropout")
	has := c.Model.traits()
	k.require("model.text.fusion_layers", t.FusionLayers == 0 || has.fusion || !has.words, "must be 0", c.Model.named()+" has no fusion layers")
	fuses := c.Objective.ITM.Weight > 0 || c.Objective.MLM.Weight > 0
	k.require("model.text.fusion_layers", t.FusionLayers > 0 || !fuses || !has.fusion, "must be > 0",
		"objective.itm and objective.mlm read the fusion layers")
}
