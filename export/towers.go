package export

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/weights"
)

// vit is the image tower, with every default written out.
func (x *job) vit() (encoders.ViT, error) {
	if _, ok := x.resNet(); ok {
		return encoders.ViT{}, x.refuse("model.image.style", x.Config.Model.Image.Style,
			"its image tower is a vision transformer", oneSide, asTimm, asONNX)
	}
	t, ok := x.sides.Image.Tower.(encoders.ImageTower)
	if !ok {
		return encoders.ViT{}, x.noRegions()
	}
	v := t.ViT.Full()
	if v.Style == encoders.StyleBlock {
		return v, x.noBlock()
	}
	if v.Classes > 1 {
		return v, x.refuse("model.head.topology", x.Config.Model.Head.Topology, "its tower has several class tokens",
			asONNX)
	}
	return v, nil
}

// noBlock refuses a vision transformer of style block.
func (x *job) noBlock() error {
	return x.refuse("model.image.style", x.Config.Model.Image.Style, "layers of model.image.block are written in no other form")
}

// noRegions refuses an image tower over features of regions, or of layers that no other form has.
func (x *job) noRegions() error {
	if _, ok := x.sides.Image.Tower.(encoders.ConvNetTower); ok {
		return x.refuse("model.image.style", x.Config.Model.Image.Style, "it has no such network of convolutions")
	}
	return x.refuse("model.image.style", x.Config.Model.Image.Style, "it has no tower over features of regions")
}

// behind refuses a text tower with a token behind its words.
func (x *job) behind() error {
	return x.refuse("model.text.style", x.Config.Model.Text.Style, "its towers have no token behind the words of a text")
}

// words is the text tower.
func (x *job) words() (encoders.TextTower, error) {
	t, ok := x.sides.Text.Tower.(encoders.TextTower)
	if !ok {
		return t, fmt.Errorf("the text tower is a %T, which no form has: use %s", x.sides.Text.Tower, asGeoalign)
	}
	if _, ok := t.Encoder.(encoders.GRU); ok {
		return t, x.refuse("model.text.style", x.Config.Model.Text.Style, "its towers have no recurrent layers")
	}
	if _, ok := t.Encoder.(encoders.BlockText); ok {
		return t, x.refuse("model.text.style", x.Config.Model.Text.Style, "its towers have no layers of model.text.block")
	}
	if p, ok := t.Encoder.(encoders.PreNormText); ok && p.Behind {
		return t, x.behind()
	}
	if (t.Pool == encoders.PoolMax || t.Pool == encoders.PoolWeighted) && !x.bare() || t.Pool == encoders.PoolGPO || t.Pool == encoders.PoolESA ||
		t.Pool == encoders.PoolFirstLast {
		return t, x.refuse("model.text.pool", string(t.Pool), "its towers have no such pool")
	}
	if t.Classes() > 1 {
		return t, x.refuse("model.head.topology", x.Config.Model.Head.Topology, "its tower has several class tokens",
			asONNX)
	}
	return t, nil
}

// kind is which of the families of vision transformers a tower is of: clip, siglip, dinov2 or vit.
func kind(v encoders.ViT) string {
	switch {
	case v.PreNorm:
		return "clip"
	case v.NoClass:
		return "siglip"
	case v.LayerScale:
		return "dinov2"
	}
	return "vit"
}

// projection is the head of a side as a linear layer; nil where it has none or another head.
func projection(h encoders.Head) *encoders.Projection {
	if p, ok := h.(encoders.Projection); ok && !p.Identity && p.Activation == "" {
		return &p
	}
	return nil
}

// oneLayer refuses heads that are more than a linear layer.
func (x *job) oneLayer(forms ...string) error {
	if style := x.Config.Model.Head.Style; style == encoders.HeadMLP || style == encoders.HeadTanh {
		return x.refuse("model.head.style", style, "its heads are one linear layer", append(forms, oneSide)...)
	}
	return nil
}

// comparable refuses heads of several layers, and spaces and scores that are no cosine of unit rows: programs of dual
// encoders have a linear layer and compute cosines.
func (x *job) comparable(forms ...string) error {
	if err := x.oneLayer(forms...); err != nil {
		return err
	}
	if list := x.Config.Model.Head.Dense; len(list) > 0 {
		return x.refuse("model.head.dense", list, "its heads are one linear layer", append(forms, oneSide)...)
	}
	space, err := x.Config.Model.Head.Space()
	if err != nil {
		return err
	}
	if !space.One() {
		return x.refuse("model.head.topology", x.Config.Model.Head.Topology, "it compares unit vectors of one sphere",
			append(forms, oneSide)...)
	}
	for _, t := range x.Config.EvalTerms() {
		if t.Kind != "cosine" && t.Kind != "inner" {
			return x.refuse("eval.score", t.Kind, "it compares pairs by their cosine",
				append(forms, oneSide, "--set eval.score=cosine")...)
		}
	}
	return nil
}

// twoSided refuses one side where a form has both.
func (x *job) twoSided(why string, forms ...string) error {
	switch {
	case x.sides.Views || x.sides.Sentences:
		return x.refuse("model.system", x.Config.Model.System, why, forms...)
	case x.Side != "":
		return x.refuse("--side", x.Side, why, forms...)
	}
	return nil
}

// fused refuses fusion layers.
func (x *job) fused() error {
	if x.sides.Fusion == nil {
		return nil
	}
	forms := []string{asALBEF, oneSide}
	if x.Config.Pictures() > 1 {
		forms = forms[1:] // ALBEF's own layers read one
	}
	return x.refuse("model.text.fusion_layers", x.sides.Fusion.FusionLayers,
		"it has no layers in which text attends to images", forms...)
}

// activationHF is the name of an activation in transformers and timm.
var activationHF = map[string]string{"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "quick_gelu": "quick_gelu"}

// number is a float32 in JSON, in the digits that it is known by.
func number(v float64) json.Number {
	return json.Number(strconv.FormatFloat(v, 'g', -1, 32))
}

// fraction is a number in JSON with a point, which is what a class of Python may insist on.
func fraction(v float64) json.Number {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return json.Number(s)
}

// constant is a parameter of a number that is everywhere the same.
func constant(name string, value float32, shape ...int) weights.Param {
	return weights.Param{Name: name, Shape: shape, Read: func(dst []float32) error {
		for i := range dst {
			dst[i] = value
		}
		return nil
	}}
}
