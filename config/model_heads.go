package config

// Heads is the pair of MLPs of model.system = "heads", each from the features of its
// modality through one hidden layer to model.head.dim.
type Heads struct {
	InImage    int     `toml:"in_image" fixed:"model" max:"1048576"` // width of the image features; 0: that of data.pairs.image
	InText     int     `toml:"in_text" fixed:"model" max:"1048576"`  // width of the text features; 0: that of data.pairs.text
	Hidden     int     `toml:"hidden" fixed:"model" max:"1048576"`   // width of the hidden layer
	Dropout    float64 `toml:"dropout"`                              // of the hidden layer
	Activation string  `toml:"activation" fixed:"meaning"`           // gelu | relu
}

// defaults are the best values of GeRA's table 1.
func (h *Heads) defaults() { *h = Heads{Hidden: 8000, Dropout: 0.3, Activation: "gelu"} }

func (h *Heads) check(k *checker, c *Config) {
	k.notNegative("model.heads.in_image", "model.heads.in_text")
	k.positive("model.heads.hidden")
	k.belowOne("model.heads.dropout")
	k.oneOf("model.heads.activation", "gelu", "relu")
	if c.Model.Stored() && c.Data.Kind != "pairs" {
		const hint = "set data.kind = \"pairs\", whose files tell it; trainer bench, which needs no files, takes a width"
		k.require("model.heads.in_image", h.InImage > 0, "must be > 0", hint)
		k.require("model.heads.in_text", h.InText > 0, "must be > 0", hint)
	}
}
