package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
)

// Head projects both towers into the shared space.
type Head struct {
	Identity    string `toml:"identity" fixed:"meaning"`                         // side without a projection, whose tokens are as wide as dim: empty (none) | image | text | both
	Style       string `toml:"style" read:"words" fixed:"model"`                 // linear (one layer) | tanh (one layer with a bias and tanh behind it, as in MCSE) | mlp (two layers with an activation between them, the first as wide as what it reads, as in ViPMM)
	Activation  string `toml:"activation" read:"mlp head" fixed:"meaning"`       // of the mlp: tanh | gelu | relu | silu
	Shared      int    `toml:"shared" read:"mlp head" fixed:"model" max:"65536"` // of the mlp: width that the rows of a tower of another width are mapped to by a linear layer first, 768 in ViPMM; 0: none
	Dim         int    `toml:"dim" fixed:"model" max:"65536"`                    // width of the shared space
	Topology    string `toml:"topology" fixed:"model"`                           // sphere (unit vectors) | Ob(n,m) (the vector is cut into m unit vectors of n channels, n x m = dim) | Multi(n,m) (m class tokens through one projection to n channels each, n x m = dim) | euclid (vectors as they come)
	TokenBlocks int    `toml:"token_blocks" fixed:"model" max:"128"`             // with Multi(n,m): blocks of each tower that the further class tokens pass, the last ones; 0: all, as in the paper
}

// Styles of heads.
const (
	HeadLinear = "linear"
	HeadTanh   = "tanh"
	HeadMLP    = "mlp"
)

func (h *Head) defaults() {
	*h = Head{Style: HeadLinear, Activation: "tanh", Dim: 256, Topology: "sphere"}
}

// hasMLPHead says whether both sides have a head of several layers.
func (c *Config) hasMLPHead() bool { return c.Model.Head.Style == HeadMLP && c.Model.traits().words }

// checkStyle tells a head of several layers what it cannot be.
func (h *Head) checkStyle(k *checker, c *Config) {
	k.OneOf("model.head.style", HeadLinear, HeadTanh, HeadMLP)
	k.OneOf("model.head.activation", "tanh", "gelu", "relu", "silu")
	k.NotNegative("model.head.shared")
	if h.Style != HeadMLP && h.Style != HeadTanh {
		return
	}
	const path, want = "model.head.style", `must be "linear"`
	t := c.Model.traits()
	k.Require(path, t.words && !t.whole && !t.sentences, want, c.Model.named()+" has no other")
	k.Require(path, h.Identity == "", want+" with model.head.identity", "a side without a projection has no layers: set model.head.identity = \"\"")
	space, err := h.Space()
	k.Require(path, err != nil || !space.Tokens, want+" with model.head.topology = \"Multi(n,m)\"", "its class tokens share one layer: use another topology")
	k.Training(path, !c.Has(section.BackboneQueue), want+" with objective.geometric", "the term passes points through one layer: set objective.geometric.weight = 0")
}

// Hidden is the width of the hidden layer of an mlp over a tower of a width.
func (h Head) Hidden(width int) int {
	if h.Shared > 0 {
		return h.Shared
	}
	return width
}

// Weights returns the weights of the matrices of a head of either style over a tower of a width, whose
// class tokens share those of a linear one.
func (h Head) Weights(width int) int64 {
	space, err := h.Space()
	if err != nil {
		return 0
	}
	n := int64(h.Dim / space.Classes())
	if h.Style != HeadMLP {
		return n * int64(width)
	}
	hidden := int64(h.Hidden(width))
	n = hidden*hidden + hidden*n
	if h.Hidden(width) != width {
		n += hidden * int64(width)
	}
	return n
}

// check tells whether the space fits the head, and what its class tokens need.
func (h *Head) check(k *checker, c *Config) {
	k.Positive("model.head.dim")
	k.NotNegative("model.head.token_blocks")
	space, err := h.Space()
	if err != nil {
		k.Require("model.head.topology", h.Dim < 1, err.Error(), "n x m must be model.head.dim: change one of the two")
		return
	}
	switch t := c.Model.traits(); {
	case t.stored:
		k.Require("model.head.topology", !space.Tokens, "must be sphere, Ob(n,m) or euclid", c.Model.named()+" has one class token for each feature, and Multi(n,m) needs m")
	case t.sentences:
		k.Require("model.head.dim", h.Dim == c.Model.Text.Width || c.Objective.SimCSE.Head == objectives.SentenceHeadAlways && !t.sentencePairs, "must be model.text.width", "an embedding is what the text tower gives, where objective.simcse.head is not \"always\"")
		fallthrough
	case !t.tokens:
		k.Require("model.head.topology", h.Topology == "sphere", `must be "sphere"`, c.Model.named()+" has no other")
	}
	h.checkIdentity(k, c)
	h.checkStyle(k, c)
	k.Require("model.head.token_blocks", h.TokenBlocks == 0 || space.Tokens, "must be 0 without class tokens of their own", "set model.head.topology = \"Multi(n,m)\"")
	if !space.Tokens {
		return
	}
	k.Require("model.head.token_blocks", h.TokenBlocks <= min(c.Model.Image.Depth, c.Model.Text.Layers), "must be at most model.image.depth and model.text.layers",
		"0 is all blocks")
	least := c.Data.Tokens + space.Spheres - 1
	k.Require("model.text.positions", c.hasGRU() || least <= c.Model.Text.Positions, fmt.Sprintf("must be at least data.tokens plus the repeated class tokens, %d", least),
		"Multi(n,m) repeats [CLS] m-1 times: raise model.text.positions")
}

// Whole says whether a side, image or text, has no projection.
func (h Head) Whole(side string) bool { return h.Identity == side || h.Identity == "both" }

// checkIdentity tells a side without a projection that needs one.
func (h *Head) checkIdentity(k *checker, c *Config) {
	k.OneOfOrEmpty("model.head.identity", "image", "text", "both")
	t := c.Model.traits()
	k.Require("model.head.identity", h.Identity == "" || t.tokens, "must be empty", c.Model.named()+" has a head of its own")
	k.Require("model.head.identity", h.Identity == "" || !t.whole, "must be empty", c.Model.named()+" has no projection where a tower is as wide as model.head.dim")
	space, err := h.Space()
	if err != nil || !t.tokens {
		return
	}
	dim, g := h.Dim/space.Classes(), c.Objective.Geometric
	for _, x := range []struct {
		side    string
		width   int
		regular bool
	}{{"image", c.Model.Image.TokenWidth(), g.Images()}, {"text", c.Model.Text.Width, g.Texts()}} {
		if !h.Whole(x.side) {
			continue
		}
		k.Require("model.head.identity", dim == x.width, fmt.Sprintf("must leave the projection of a side whose width is not that of the space: model.%s.width is %d, a token of the space %d", x.side, x.width, dim),
			h.widen(x.width))
		k.Training("model.head.identity", !c.Objective.Geometric.On() || !x.regular, "must leave the projection that objective.geometric regularises",
			"set objective.geometric.weight = 0 or model.head.identity = \"\"")
	}
}

// widen says how a side of that width can go without a projection.
func (h Head) widen(width int) string {
	if h.Topology == "sphere" || h.Topology == "euclid" {
		return fmt.Sprintf(`set model.head.dim = %d or model.head.identity = ""`, width)
	}
	return `set model.head.identity = "", or choose a model.head.topology whose tokens are as wide`
}
