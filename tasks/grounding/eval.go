package grounding

import "github.com/geoalign/geoalign/config/section"

// Eval says which attention heat maps of pairs are read from (--task grounding).
type Eval struct {
	// itm (the attention of words to patches in a fusion layer, by the match head) | itc (that of the image's class
	// token in a block of the image tower, by the cosine)
	Mode string `toml:"mode"`
	// fusion layer or block, 1 is the first; 0: of the fusion layers the one in the middle, the third of six as in
	// ALBEF, of the blocks the last one
	Layer int `toml:"layer" max:"1024"`
}

// Values of eval.grounding.mode.
const (
	ByMatch  = "itm"
	ByCosine = "itc"
)

// Defaults implements section.Defaulter.
func (e *Eval) Defaults() { *e = Eval{Mode: ByMatch} }

// Check implements section.Checked.
func (e *Eval) Check(k *section.Checker) {
	k.OneOf("mode", ByMatch, ByCosine)
	k.NotNegative("layer")
	if k.Value("data.kind") != Name {
		return
	}
	layers := int(k.Number("model.text.fusion_layers"))
	if e.Mode == ByCosine {
		layers = int(k.Number("model.image.depth"))
	}
	k.Require("layer", e.Layer <= layers || layers < 0,
		"must be at most model.text.fusion_layers, or model.image.depth with eval.grounding.mode = \"itc\"")
	k.Require("mode", e.Mode != ByMatch || layers > 0 && k.Number("objective.itm.weight") > 0,
		"must be itc without a match head", "objective.itm.weight or model.text.fusion_layers is 0")
	k.Require("model.image.resize", k.Value("model.image.resize") != "crop", "must not be \"crop\"",
		"a heat map is one of the whole picture")
}
