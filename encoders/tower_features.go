package encoders

import (
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
)

// FeatureHeads is the pair of MLPs of model.system = "heads", each from the features of its
// modality through hidden layers of one width to model.head.dim.
type FeatureHeads struct {
	// width of the image features; 0: that of data.pairs.image
	InImage int `toml:"in_image" fixed:"model" max:"1048576"`
	// width of the text features; 0: that of data.pairs.text
	InText int `toml:"in_text" fixed:"model" max:"1048576"`
	// hidden layers; 0: one linear layer is the whole head
	Layers int `toml:"layers" fixed:"model" max:"128"`
	// width of the hidden layers
	Hidden int `toml:"hidden" when:"layers>0" fixed:"model" max:"1048576"`
	// of the hidden layers
	Dropout float64 `toml:"dropout" when:"layers>0"`
	// gelu | relu | silu
	Activation string `toml:"activation" when:"layers>0" fixed:"meaning"`
	// a hidden layer adds its input where both have one width
	Residual bool `toml:"residual" when:"skips" fixed:"meaning"`
	// layer norm of each hidden layer, before its activation
	LayerNorm bool `toml:"layer_norm" when:"layers>0" fixed:"model"`
	// subtract from features the mean of those that training may see and bring them to unit length; the mean is kept
	// in the checkpoint
	Center bool `toml:"center" fixed:"model"`
	// cca | ridge | procrustes: linear heads start from this map of [model.align], fitted to the training pairs;
	// empty: from random weights
	Start string `toml:"start" fixed:"run"`
}

// Defaults implements section.Defaulter by the best values of GeRA's table 1.
func (h *FeatureHeads) Defaults() {
	*h = FeatureHeads{Layers: 1, Hidden: 8000, Dropout: 0.3, Activation: "gelu"}
}

// Gives implements section.Giver.
func (h *FeatureHeads) Gives() (list []section.Fact) {
	if h.Dropout > 0 {
		list = append(list, section.TowerDropout)
	}
	if h.Layers > 1 || h.Layers == 1 && (h.Hidden == h.InImage || h.Hidden == h.InText) {
		list = append(list, section.Skips)
	}
	return list
}

// Check implements section.Checked.
func (h *FeatureHeads) Check(k *section.Checker) {
	k.NotNegative("in_image", "in_text", "layers")
	k.Positive("hidden")
	k.BelowOne("dropout")
	k.OneOf("activation", "gelu", "relu", "silu")
	k.OneOfOrEmpty("start", "cca", "ridge", "procrustes")
	if !k.Has(section.FeatureHeads) {
		return
	}
	k.Require("start", h.Start == "" || h.Layers == 0, "must be empty with hidden layers",
		"a map in closed form is one linear layer: set model.heads.layers = 0")
	k.Require("start", h.Start == "" || section.Of[HeadOptions](k).Topology == "sphere",
		"must be empty on another space than a sphere",
		"the map is made for cosines of whole rows: set model.head.topology = \"sphere\"")
	k.Require("start", h.Start == "" || k.Value("init.checkpoint") == "", "must be empty with init.checkpoint",
		"training starts from one of the two")
	k.Require("start", h.Start != "ridge" || k.Value("model.align.ridge.direction") != "both",
		`cannot be "ridge" both ways`,
		`its space has two parts of unit length each, a head has one: set model.align.ridge.direction = "text_to_image" or "image_to_text"`)
	if k.Value("data.kind") != "pairs" {
		const hint = "set data.kind = \"pairs\", whose files tell it; trainer bench, which needs no files, takes a width"
		k.Require("in_image", h.InImage > 0, "must be > 0", hint)
		k.Require("in_text", h.InText > 0, "must be > 0", hint)
	}
}

// Head returns the head of either side.
func (h FeatureHeads) Head(space space.Space) MLP {
	return MLP{Space: space, Layers: h.Layers, Hidden: h.Hidden, Activation: h.Activation,
		Dropout: h.Dropout, Residual: h.Residual, LayerNorm: h.LayerNorm}
}

// Weights counts the weights of the matrices of both heads with outputs of a width, and the values of a row that their
// backward pass reads.
func (h FeatureHeads) Weights(dim int) (weights, kept int64) {
	in := int64(h.InImage + h.InText)
	if h.Layers == 0 {
		return in * int64(dim), 0
	}
	between := 2 * int64(h.Layers-1) * int64(h.Hidden) // rows of the matrices from one hidden layer to the next
	return (in + 2*int64(dim) + between) * int64(h.Hidden), 2 * int64(h.Layers) * int64(h.Hidden)
}

// FeatureTower is the identity: rows of a frozen encoder, which are one class token each. With
// Center it is
//
//	y = (x - mean) / |x - mean|
//
// whose -mean is kept among the parameters as shift, which no step changes.
type FeatureTower struct {
	Column string // name of the column
	Dim    int    // D
	Center bool
	Mean   []float32 // (D) of a fresh tower that centres; nil: zeros
}

var _ Tower = FeatureTower{}

// centerEps is the least length that a centred row is divided by.
const centerEps = 1e-12

// shift starts at -mean.
func (t FeatureTower) shift() Init {
	return func(_ *rand.Rand, dst []float32) {
		for i, m := range t.Mean {
			dst[i] = -m
		}
	}
}

// Columns is the feature row, (D).
func (t FeatureTower) Columns() []batch.Column {
	return []batch.Column{{Name: t.Column, Shape: []int{t.Dim}}}
}

// Classes returns 1.
func (t FeatureTower) Classes() int { return 1 }

// Shape returns the tokens of a row and their width.
func (t FeatureTower) Shape() (length, width int) { return 1, t.Dim }

// Encode returns the rows (R, D) as they are, or centred.
func (t FeatureTower) Encode(_ *Context, s Scope, in Inputs, want Want) Sequence {
	x := in[t.Column]
	columns("features", x)
	if t.Center {
		if t.Mean != nil && len(t.Mean) != t.Dim {
			misuse("features", x, "the mean must have %d values (got %d)", t.Dim, len(t.Mean))
		}
		shift := s.As(Traits{Frozen: true, Given: true}).Param("shift", t.shift(), 1, t.Dim)
		x = nn.L2Normalize(nn.AddPositions(x, shift, 1), centerEps) // (R, D)
	}
	return Sequence{Tokens: x, Classes: x, Len: 1, Width: t.Dim}
}
