package config

// Heads is the pair of MLPs of model.system = "heads", each from the features of its
// modality through hidden layers of one width to model.head.dim.
type Heads struct {
	InImage    int     `toml:"in_image" fixed:"model" max:"1048576"`                    // width of the image features; 0: that of data.pairs.image
	InText     int     `toml:"in_text" fixed:"model" max:"1048576"`                     // width of the text features; 0: that of data.pairs.text
	Layers     int     `toml:"layers" fixed:"model" max:"128"`                          // hidden layers; 0: one linear layer is the whole head
	Hidden     int     `toml:"hidden" read:"hidden layers" fixed:"model" max:"1048576"` // width of the hidden layers
	Dropout    float64 `toml:"dropout" read:"hidden layers"`                            // of the hidden layers
	Activation string  `toml:"activation" read:"hidden layers" fixed:"meaning"`         // gelu | relu | silu
	Residual   bool    `toml:"residual" read:"skips" fixed:"meaning"`                   // a hidden layer adds its input where both have one width
	LayerNorm  bool    `toml:"layer_norm" read:"hidden layers" fixed:"model"`           // layer norm of each hidden layer, before its activation
}

// defaults are the best values of GeRA's table 1.
func (h *Heads) defaults() { *h = Heads{Layers: 1, Hidden: 8000, Dropout: 0.3, Activation: "gelu"} }

func (h *Heads) check(k *checker, c *Config) {
	k.notNegative("model.heads.in_image", "model.heads.in_text")
	k.notNegative("model.heads.layers")
	k.positive("model.heads.hidden")
	k.belowOne("model.heads.dropout")
	k.oneOf("model.heads.activation", "gelu", "relu", "silu")
	if c.Model.Stored() && c.Data.Kind != "pairs" {
		const hint = "set data.kind = \"pairs\", whose files tell it; trainer bench, which needs no files, takes a width"
		k.require("model.heads.in_image", h.InImage > 0, "must be > 0", hint)
		k.require("model.heads.in_text", h.InText > 0, "must be > 0", hint)
	}
}
