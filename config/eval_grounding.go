package config

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// EvalGrounding says which attention heat maps of pairs are read from (--task grounding).
type EvalGrounding struct {
	Mode  string `toml:"mode"`             // itm (the attention of words to patches in a fusion layer, by the match head) | itc (that of the image's class token in a block of the image tower, by the cosine)
	Layer int    `toml:"layer" max:"1024"` // fusion layer or block, 1 is the first; 0: of the fusion layers the one in the middle, the third of six as in ALBEF, of the blocks the last one
}

// Values of eval.grounding.mode.
const (
	GroundingByMatch  = "itm"
	GroundingByCosine = "itc"
)

func (e *EvalGrounding) defaults() { *e = EvalGrounding{Mode: GroundingByMatch} }

func (e *EvalGrounding) check(k *checker, c *Config) {
	k.OneOf("eval.grounding.mode", GroundingByMatch, GroundingByCosine)
	k.NotNegative("eval.grounding.layer")
	layers := c.Model.Text.FusionLayers
	if e.Mode == GroundingByCosine {
		layers = c.Model.Image.Depth
	}
	if c.Data.Kind == source.GroundingKind {
		k.Require("eval.grounding.layer", e.Layer <= layers || layers < 0, "must be at most model.text.fusion_layers, or model.image.depth with eval.grounding.mode = \"itc\"")
		k.Require("eval.grounding.mode", e.Mode != GroundingByMatch || layers > 0 && c.Objective.ITM.Weight > 0, "must be itc without a match head", "objective.itm.weight or model.text.fusion_layers is 0")
		k.Require("model.image.resize", c.Model.Image.Resize != "crop", "must not be \"crop\"", "a heat map is one of the whole picture")
	}
}

// hasHeatMaps says whether the model attends to patches and compares features.
func (c *Config) hasHeatMaps() bool {
	return c.Has(section.Captions) && !c.Has(section.TokenScores) && !c.Has(section.Stored) && c.Has(section.Images) && c.Model.Image.Transforms()
}
