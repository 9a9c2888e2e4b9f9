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
	Center     bool    `toml:"center" fixed:"model"`                                    // subtract from features the mean of those that training may see and bring them to unit length; the mean is kept in the checkpoint
	Start      string  `toml:"start" fixed:"run"`                                       // cca | ridge | procrustes: linear heads start from this map of [model.align], fitted to the training pairs; empty: from random weights
}

// startMethods are the values of model.heads.start: maps of one linear layer a side.
var startMethods = []string{AlignByCCA, AlignByRidge, AlignByProcrustes}

// defaults are the best values of GeRA's table 1.
func (h *Heads) defaults() { *h = Heads{Layers: 1, Hidden: 8000, Dropout: 0.3, Activation: "gelu"} }

// CentersFeatures says whether heads see centred features.
func (c Config) CentersFeatures() bool { return c.hasHeads() && c.Model.Heads.Center }

// HeadsStart returns model.heads.start of a system that has such heads, else nothing.
func (c Config) HeadsStart() string {
	if !c.hasHeads() {
		return ""
	}
	return c.Model.Heads.Start
}

func (h *Heads) check(k *checker, c *Config) {
	k.NotNegative("model.heads.in_image", "model.heads.in_text")
	k.NotNegative("model.heads.layers")
	k.Positive("model.heads.hidden")
	k.BelowOne("model.heads.dropout")
	k.OneOf("model.heads.activation", "gelu", "relu", "silu")
	k.OneOfOrEmpty("model.heads.start", startMethods...)
	if !c.hasHeads() {
		return
	}
	k.Require("model.heads.start", h.Start == "" || h.Layers == 0, "must be empty with hidden layers", "a map in closed form is one linear layer: set model.heads.layers = 0")
	k.Require("model.heads.start", h.Start == "" || c.Model.Head.Topology == "sphere", "must be empty on another space than a sphere", "the map is made for cosines of whole rows: set model.head.topology = \"sphere\"")
	k.Require("model.heads.start", h.Start == "" || c.Init.Checkpoint == "", "must be empty with init.checkpoint", "training starts from one of the two")
	k.Require("model.heads.start", h.Start != AlignByRidge || c.Model.Align.Ridge.Direction != "both", `cannot be "ridge" both ways`,
		`its space has two parts of unit length each, a head has one: set model.align.ridge.direction = "text_to_image" or "image_to_text"`)
	if c.Data.Kind != "pairs" {
		const hint = "set data.kind = \"pairs\", whose files tell it; trainer bench, which needs no files, takes a width"
		k.Require("model.heads.in_image", h.InImage > 0, "must be > 0", hint)
		k.Require("model.heads.in_text", h.InText > 0, "must be > 0", hint)
	}
}
