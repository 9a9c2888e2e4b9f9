package encoders

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// DenseLayer is a linear layer with an activation behind the pool of an encoder, a Dense module of
// sentence-transformers, or of a side of two.
type DenseLayer struct {
	Side       string // image or text, of two towers; empty: of one encoder
	Width      int
	Activation string // one of DenseActivations; empty: none
	NoBias     bool
}

// DenseActivations are those of a DenseLayer.
var DenseActivations = []string{"tanh", "gelu", "relu", "silu"}

// ParseDense reads an item of model.head.dense.
func ParseDense(item string) (l DenseLayer, err error) {
	width, rest, _ := strings.Cut(item, " ")
	if width == "image" || width == "text" {
		l.Side = width
		width, rest, _ = strings.Cut(rest, " ")
	}
	if l.Width, err = strconv.Atoi(width); err != nil || l.Width < 1 {
		return l, fmt.Errorf("%q has no width in front", item)
	}
	for _, word := range strings.Fields(rest) {
		switch {
		case word == "nobias" && !l.NoBias:
			l.NoBias = true
		case slices.Contains(DenseActivations, word) && l.Activation == "":
			l.Activation = word
		default:
			return l, fmt.Errorf("%q has %q, which is no activation and not nobias", item, word)
		}
	}
	return l, nil
}

// String is the item of model.head.dense.
func (l DenseLayer) String() string {
	s := strings.TrimLeft(l.Side+" "+strconv.Itoa(l.Width), " ")
	if l.Activation != "" {
		s += " " + l.Activation
	}
	if l.NoBias {
		s += " nobias"
	}
	return s
}

// Layers returns the layers of a side of model.head.dense, or of one encoder with an empty one.
func (h HeadOptions) Layers(side string) (list []DenseLayer, err error) {
	for _, item := range h.Dense {
		l, err := ParseDense(item)
		if err != nil {
			return nil, err
		}
		if l.Side == side {
			list = append(list, l)
		}
	}
	return list, nil
}

// checkDense checks the layers, and for one encoder its head: what its layers and its width are.
func (h *HeadOptions) checkDense(k *section.Checker) {
	one := k.Has(section.OneEncoder)
	for _, item := range h.Dense {
		l, err := ParseDense(item)
		if err != nil {
			k.Require("dense", false, "has an item that is none: "+err.Error(),
				`write a width, an activation and nobias, such as "512 tanh"`)
			return
		}
		if one {
			k.Require("dense", l.Side == "", "must name no side", k.Named()+` has one: write "512 tanh"`)
		} else {
			k.Require("dense", l.Side != "", "must name a side", k.Named()+` has two: write "text 512 tanh"`)
			k.Require("dense", l.Side == "" || h.Whole(l.Side), "must be of a side that model.head.identity names",
				"layers stand behind the pool, and a projection is a layer")
		}
	}
	if one {
		h.checkEncoder(k)
	}
}

// width is that of what a side gives with its layers, of a tower of a width.
func (h HeadOptions) width(side string, tower int) int {
	if layers, _ := h.Layers(side); len(layers) > 0 {
		return layers[len(layers)-1].Width
	}
	return tower
}

// checkEncoder checks the head of one encoder.
func (h *HeadOptions) checkEncoder(k *section.Checker) {
	width := section.Of[TextOptions](k).Width
	if k.Has(section.Images) {
		width = section.Of[ImageOptions](k).TokenWidth()
	}
	if h.Identity == "" {
		width = h.Dim
	}
	width = h.width("", width)
	last := "what the tower gives, as there is no projection and no model.head.dense"
	if len(h.Dense) > 0 {
		last = "the width of the last layer of model.head.dense"
	}
	k.Require("dim", h.Identity == "" && len(h.Dense) == 0 || h.Dim == width, fmt.Sprintf("must be %d", width), last)
	k.Require("dense", h.Identity != "" || len(h.Dense) == 0, "must be empty without model.head.identity",
		"layers stand behind the pool, and a projection is a layer")
	k.OneOfOrEmpty("identity", "image", "text")
	k.Require("topology", h.Topology == "sphere" || h.Topology == "euclid", "must be sphere or euclid",
		k.Named()+" has one vector for each row")
	k.Require("style", h.Style == HeadLinear, `must be "linear"`, k.Named()+" has no other: see model.head.dense")
	k.Require("token_blocks", h.TokenBlocks == 0, "must be 0", k.Named()+" has one class token")
}

// Dense is a head of layers behind the pool of an encoder or of one of two towers, then what the space asks for. Parameters are
// dense/00/weight, dense/00/bias and so on, behind those of the projection.
type Dense struct {
	Projection
	Layers []DenseLayer
}

var _ TokenHead = Dense{}

// Project implements Head: class tokens (R, D) to features (R, C).
func (d Dense) Project(_ *Context, s Scope, x *gorgonia.Node) *gorgonia.Node { return d.Rows(s, x) }

// Rows implements TokenHead: every row as Project projects class tokens.
func (d Dense) Rows(s Scope, x *gorgonia.Node) *gorgonia.Node { return d.Normalize(d.Raw(s, x)) }

// Raw implements TokenHead.
func (d Dense) Raw(s Scope, x *gorgonia.Node) *gorgonia.Node {
	for i, l := range d.Layers {
		in := s.In(fmt.Sprintf("dense/%02d", i))
		init := LinearDefault(columns("dense", x))
		weight := in.Param("weight", init, l.Width, columns("dense", x))
		var bias *gorgonia.Node
		if !l.NoBias {
			bias = in.bias(init, l.Width)
		}
		x = l.activate(nn.Linear(x, weight, bias)) // (R, Width)
	}
	return d.Projection.Raw(s, x)
}

// activate is the activation of the layer.
func (l DenseLayer) activate(x *gorgonia.Node) *gorgonia.Node {
	switch l.Activation {
	case "tanh":
		return nn.Tanh(x)
	case "gelu":
		return nn.GELU(x)
	case "relu":
		return nn.ReLU(x)
	case "silu":
		return nn.SiLU(x)
	}
	return x
}
