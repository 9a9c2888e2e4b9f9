package encoders

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/space"
)

// HeadOptions projects both towers into the shared space.
type HeadOptions struct {
	// side without a projection, whose tokens are as wide as dim: empty (none) | image | text | both
	Identity string `toml:"identity" fixed:"meaning"`
	// linear (one layer) | tanh (one layer with a bias and tanh behind it, as in MCSE) | mlp (two layers with an
	// activation between them, the first as wide as what it reads, as in ViPMM)
	Style string `toml:"style" when:"words" fixed:"model"`
	// of the mlp: tanh | gelu | relu | silu
	Activation string `toml:"activation" when:"style=mlp" fixed:"meaning"`
	// of the mlp: width that the rows of a tower of another width are mapped to by a linear layer first, 768 in ViPMM;
	// 0: none
	Shared int `toml:"shared" when:"style=mlp" fixed:"model" max:"65536"`
	// width of the shared space
	Dim int `toml:"dim" fixed:"model" max:"65536"`
	// sphere (unit vectors) | Ob(n,m) (the vector is cut into m unit vectors of n channels, n x m = dim) | Multi(n,m)
	// (m class tokens through one projection to n channels each, n x m = dim) | euclid (vectors as they come)
	Topology string `toml:"topology" fixed:"model"`
	// with Multi(n,m): blocks of each tower that the further class tokens pass, the last ones; 0: all, as in the paper
	TokenBlocks int `toml:"token_blocks" fixed:"model" max:"128"`
	// layers behind the pool and the projection, as the Dense modules of sentence-transformers: of each its width, its
	// activation (tanh, gelu, relu or silu; none without) and nobias where it has no bias, as in "512 tanh"; of two
	// towers with a side in front that identity names, as in "text 512 gelu nobias"
	Dense []string `toml:"dense" when:"one encoder or tokens" fixed:"meaning"`
}

// Styles of heads.
const (
	HeadLinear = "linear"
	HeadTanh   = "tanh"
	HeadMLP    = "mlp"
)

// Defaults implements section.Defaulter.
func (h *HeadOptions) Defaults() {
	*h = HeadOptions{Style: HeadLinear, Activation: "tanh", Dim: 256, Topology: "sphere"}
}

// Check implements section.Checked: whether the space fits the head, and what its class tokens need.
func (h *HeadOptions) Check(k *section.Checker) {
	k.Positive("dim")
	k.NotNegative("token_blocks")
	space, err := h.Space()
	if err != nil {
		k.Require("topology", h.Dim < 1, err.Error(), "n x m must be model.head.dim: change one of the two")
		return
	}
	image, text := section.Of[ImageOptions](k), section.Of[TextOptions](k)
	k.Require("topology", !k.Has(section.Stored) || !space.Tokens, "must be sphere, Ob(n,m) or euclid",
		k.Named()+" has one class token for each feature, and Multi(n,m) needs m")
	always := k.Value("objective.simcse.head") == "always" && !k.Has(section.SentencePairs)
	if k.Has(section.OneEncoder) {
		h.checkDense(k)
		return
	}
	h.checkDense(k)
	k.Require("dense", len(h.Dense) == 0 || k.Has(section.Tokens) && !k.Has(section.TowerAsSpace), "must be empty",
		k.Named()+" has a head of its own")
	k.Require("dim", !k.Has(section.Sentences) || h.Dim == text.Width || always, "must be model.text.width",
		"an embedding is what the text tower gives, where objective.simcse.head is not \"always\"")
	k.Require("topology", h.Topology == "sphere" || k.Has(section.Tokens) || k.Has(section.Stored), `must be "sphere"`,
		k.Named()+" has no other")
	h.checkIdentity(k, space)
	h.checkStyle(k, space)
	k.Require("token_blocks", h.TokenBlocks == 0 || space.Tokens, "must be 0 without class tokens of their own",
		"set model.head.topology = \"Multi(n,m)\"")
	if !space.Tokens {
		return
	}
	k.Require("token_blocks", h.TokenBlocks <= min(image.Depth, text.Layers),
		"must be at most model.image.depth and model.text.layers", "0 is all blocks")
	least := int(k.Number("data.tokens")) + space.Spheres - 1
	k.Require("model.text.positions", k.Has(section.Recurrent) || least <= text.Positions,
		fmt.Sprintf("must be at least data.tokens plus the repeated class tokens, %d", least),
		"Multi(n,m) repeats [CLS] m-1 times: raise model.text.positions")
}

// checkIdentity tells a side without a projection that needs one.
func (h *HeadOptions) checkIdentity(k *section.Checker, space space.Space) {
	k.OneOfOrEmpty("identity", "image", "text", "both")
	k.Require("identity", h.Identity == "" || k.Has(section.Tokens), "must be empty",
		k.Named()+" has a head of its own")
	k.Require("identity", h.Identity == "" || !k.Has(section.TowerAsSpace), "must be empty",
		k.Named()+" has no projection where a tower is as wide as model.head.dim")
	if !k.Has(section.Tokens) {
		return
	}
	dim, regular := h.Dim/space.Classes(), ""
	if k.Number("objective.geometric.weight") > 0 {
		regular = k.Value("objective.geometric.modalities").(string)
	}
	for _, x := range []struct {
		side  string
		width int
	}{{"image", section.Of[ImageOptions](k).TokenWidth()}, {"text", section.Of[TextOptions](k).Width}} {
		if !h.Whole(x.side) {
			continue
		}
		given := fmt.Sprintf("model.%s.width is %d", x.side, x.width)
		if width := h.width(x.side, 0); width > 0 {
			x.width, given = width, fmt.Sprintf("model.head.dense gives %d of %ss", width, x.side)
		}
		cure := `set model.head.identity = "", or choose a model.head.topology whose tokens are as wide`
		if h.Topology == "sphere" || h.Topology == "euclid" {
			cure = fmt.Sprintf(`set model.head.dim = %d or model.head.identity = ""`, x.width)
		}
		k.Require("identity", dim == x.width,
			fmt.Sprintf("must leave the projection of a side whose width is not that of the space: %s, a token of the space %d", given, dim), cure)
		k.Training("identity", !slices.Contains([]string{x.side, "both"}, regular),
			"must leave the projection that objective.geometric regularises",
			"set objective.geometric.weight = 0 or model.head.identity = \"\"")
	}
}

// checkStyle tells a head that is not linear what it cannot be.
func (h *HeadOptions) checkStyle(k *section.Checker, space space.Space) {
	k.OneOf("style", HeadLinear, HeadTanh, HeadMLP)
	k.OneOf("activation", "tanh", "gelu", "relu", "silu")
	k.NotNegative("shared")
	if h.Style != HeadMLP && h.Style != HeadTanh {
		return
	}
	const want = `must be "linear"`
	k.Require("style", k.Has(section.Words) && !k.Has(section.TowerAsSpace) && !k.Has(section.Sentences), want,
		k.Named()+" has no other")
	k.Require("style", len(h.Dense) == 0, want+" with model.head.dense", "its layers are those of both sides")
	k.Require("style", h.Identity == "", want+" with model.head.identity",
		"a side without a projection has no layers: set model.head.identity = \"\"")
	k.Require("style", !space.Tokens, want+" with model.head.topology = \"Multi(n,m)\"",
		"its class tokens share one layer: use another topology")
	k.Training("style", !k.Has(section.BackboneQueue), want+" with objective.geometric",
		"the term passes points through one layer: set objective.geometric.weight = 0")
}

// Space returns the space that Topology names. Its error says how one is written, or that
// its size is not that of Dim.
func (h HeadOptions) Space() (space.Space, error) { return space.Parse(h.Topology, h.Dim) }

// Whole says whether a side, image or text, has no projection.
func (h HeadOptions) Whole(side string) bool { return h.Identity == side || h.Identity == "both" }

// Head returns the head of a side, image or text, over a tower of a width: the linear one given, which is left out
// where Identity says so, its layers in Dense, one with tanh behind it, or an MLP.
func (h HeadOptions) Head(side string, width int, linear Projection) Head {
	switch h.Style {
	case HeadMLP:
		return MLP{Space: linear.Space, Shared: h.Shared, Layers: 1, Hidden: h.hidden(width), Activation: h.Activation}
	case HeadTanh:
		return TanhHead(linear.Space)
	}
	linear.Identity = h.Whole(side)
	if layers, _ := h.Layers(side); len(layers) > 0 { // Check has told an error
		return Dense{Projection: linear, Layers: layers}
	}
	return linear
}

// TanhHead is a linear layer and tanh, the head of SimCSE.
func TanhHead(space space.Space) Projection { return Projection{Space: space, Activation: "tanh"} }

// hidden is the width of the hidden layer of an mlp over a tower of a width.
func (h HeadOptions) hidden(width int) int { return cmp.Or(h.Shared, width) }

// Weights returns the weights of the matrices of a head of either style over a tower of a width, whose
// class tokens share those of a linear one.
func (h HeadOptions) Weights(width int) int64 {
	space, err := h.Space()
	if err != nil {
		return 0
	}
	n := int64(h.Dim / space.Classes())
	if h.Style != HeadMLP {
		return n * int64(width)
	}
	hidden := int64(h.hidden(width))
	n = hidden*hidden + hidden*n
	if h.hidden(width) != width {
		n += hidden * int64(width)
	}
	return n
}

// ViewHead is the head of the systems of images alone, moco and swav, through which both views
// of an image pass.
type ViewHead struct {
	// hidden width of the MLP that projects an image; 0: as wide as a token of the image tower
	Hidden int `toml:"hidden" fixed:"model" max:"262144"`
}

// Check implements section.Checked.
func (v *ViewHead) Check(k *section.Checker) { k.NotNegative("hidden") }

// Head returns the head over a tower of a width.
func (v ViewHead) Head(width int, space space.Space) MLP {
	return MLP{Space: space, Layers: 1, Hidden: cmp.Or(v.Hidden, width), Activation: "relu"}
}
