package encoders

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/recurrent"
	"gorgonia.org/gorgonia"
)

// Directions of a GRU. The empty one is DirectionsMean.
const (
	DirectionForward = "forward" // from the first word to the last alone
	DirectionsMean   = "mean"    // both, averaged (SCAN, Lee et al. 2018)
	DirectionsConcat = "concat"  // both, side by side
)

// GRU is the text encoder of image-text matching (VSE++, Faghri et al. 2018; SCAN, Lee et al.
// 2018): embeddings of words and gated recurrent units over them, in one direction or in both.
//
// Layers are those of PyTorch's nn.GRU: a further layer reads the states of both directions side by
// side. Parameters have PyTorch's shapes and values to start from.
type GRU struct {
	// channels of the embedding of a word
	Embedding int `toml:"embedding" fixed:"model" max:"65536"`
	// forward (words are read from the first to the last) | mean (both directions, averaged) | concat (both, side by
	// side, with half of model.text.width each)
	Directions string `toml:"directions" fixed:"model"`

	Vocab   int     `toml:"-"` // V
	Layers  int     `toml:"-"` // at least 1
	Width   int     `toml:"-"` // D, channels of a state of a text: with DirectionsConcat half of them of each direction
	Dropout float64 `toml:"-"` // of the embeddings and of what further layers read
}

// Defaults implements section.Defaulter.
func (g *GRU) Defaults() { *g = GRU{Embedding: 300, Directions: DirectionsMean} }

// Check implements section.Checked.
func (g *GRU) Check(k *section.Checker) {
	k.NotNegative("embedding")
	if k.Has(section.Recurrent) {
		k.Positive("embedding")
		k.Require("model.text.width", g.Directions != DirectionsConcat || section.Of[TextOptions](k).Width%2 == 0,
			"must be even with model.text.gru.directions \"concat\", which halves it")
	}
	if k.Has(section.Recurrent) || g.Directions != "" {
		k.OneOf("directions", DirectionForward, DirectionsMean, DirectionsConcat)
	}
}

// directions are how many there are.
func (g GRU) directions() int {
	if g.Directions == DirectionForward {
		return 1
	}
	return 2
}

// Weights counts the weights of the recurrent layers.
func (g GRU) Weights() int64 {
	n, h := g.directions(), g.hidden()
	in := g.Embedding + (g.Layers-1)*n*h // of all layers
	return 3 * int64(n) * int64(h) * (int64(in) + int64(g.Layers)*int64(h))
}

// Gates returns the channels of a token that the backward pass of the layers reads: the gates of each direction.
func (g GRU) Gates() int { return 4 * g.directions() * g.hidden() * g.Layers }

// Widest returns the channels of a token of the widest array: its gates or its embedding.
func (g GRU) Widest() int { return max(4*g.hidden(), g.Embedding) }

var _ TextEncoder = GRU{}

func (g GRU) classes() int { return 1 }
func (g GRU) width() int   { return g.Width }

// hidden is the width of a state of one direction.
func (g GRU) hidden() int {
	if g.Directions == DirectionsConcat {
		return g.Width / 2
	}
	return g.Width
}

// wordInit starts embeddings as VSE++ does.
var wordInit = Uniform(.1)

// Text encodes texts into the states at their words, 0 beyond a length, (R*L, D), or with at into
// those at M places alone, (M, D).
func (g GRU) Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node {
	states := g.join(g.states(c, s, a))
	if at != nil {
		states = at.of(states)
	}
	return states
}

// TextClasses encodes texts as Text does, with the states at their first words, (R, D), beside them.
func (g GRU) TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node) {
	states = g.Text(c, s, a, nil)
	classes = leading(states, 1, a.Len)
	if !all {
		states = nil
	}
	return states, classes
}

// ends encodes texts into their states, and into the last states of each direction, (R, D): of
// the reverse one that after the first word.
func (g GRU) ends(c *Context, s Scope, a TextArgs) (states, ends *gorgonia.Node) {
	forward, reverse := g.states(c, s, a)
	last, first := recurrent.Last(forward, a.Lengths, a.Len, false), (*gorgonia.Node)(nil)
	if reverse != nil {
		first = recurrent.Last(reverse, a.Lengths, a.Len, true)
	}
	return g.join(forward, reverse), g.join(last, first)
}

// states returns those of the last layer, (R*L, H), and of the reverse direction where there is one.
func (g GRU) states(c *Context, s Scope, a TextArgs) (forward, reverse *gorgonia.Node) {
	switch {
	case g.Layers < 1:
		misuse("text", a.IDs, "want at least one layer (got %d)", g.Layers)
	case g.Directions == DirectionsConcat && g.Width%2 != 0:
		misuse("text", a.IDs, "width must be even with the states of two directions side by side (got %d)", g.Width)
	}
	c.given(a.IDs.Shape()[0], a.Len)
	x := nn.Embed(s.Param("embeddings/word/weight", wordInit, g.Vocab, g.Embedding), a.IDs) // (R*L, I)
	for i := range g.Layers {
		layer := s.Layer("layers", i)
		x = c.dropout(x, g.Dropout)
		s.tap.tokens(i, x, a.Len)
		s.block(func() {
			forward = g.unit(layer.In("forward"), x, a, false)
			if g.Directions != DirectionForward {
				reverse = g.unit(layer.In("reverse"), x, a, true)
			}
		})
		if x = forward; reverse != nil && i+1 < g.Layers {
			x = layout.ConcatColumns(forward, reverse) // (R*L, 2H)
		}
	}
	return forward, reverse
}

// unit is one direction of a layer over x (R*L, I): (R*L, H).
func (g GRU) unit(s Scope, x *gorgonia.Node, a TextArgs, reverse bool) *gorgonia.Node {
	return gruUnit(s, x, a.Lengths, a.Len, g.hidden(), reverse)
}

// gruUnit is one direction of a layer of h channels over x (R*l, I) with lengths (R): (R*l, h).
func gruUnit(s Scope, x, lengths *gorgonia.Node, l, h int, reverse bool) *gorgonia.Node {
	in := columns("gru", x)
	init, bias := Uniform(1/math.Sqrt(float64(h))), s.As(Traits{Group: GroupBias})
	return recurrent.GRU(recurrent.Args{
		X: x, Lengths: lengths, Len: l, Reverse: reverse,
		WeightIH: s.Param("weight_ih", init, 3*h, in), WeightHH: s.Param("weight_hh", init, 3*h, h),
		BiasIH: bias.Param("bias_ih", init, 3*h), BiasHH: bias.Param("bias_hh", init, 3*h),
	})
}

// join makes one of the states of both directions.
func (g GRU) join(forward, reverse *gorgonia.Node) *gorgonia.Node {
	switch {
	case reverse == nil:
		return forward
	case g.Directions == DirectionsConcat:
		return layout.ConcatColumns(forward, reverse)
	}
	return arith.Combine([]float32{.5, .5}, forward, reverse)
}
