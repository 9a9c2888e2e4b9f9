package encoders

import (
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Interaction scores images and texts by their tokens, where features compare one row of each
// (late interaction, Khattab and Zaharia 2020). Package interact has the kinds. The same
// interaction builds the training step and the computation of evaluation.
type Interaction interface {
	// Scores returns the scores (N, M) of N images with M texts, before any temperature.
	// Parameters are those of the scope of the whole model.
	Scores(c *Context, s Scope, images, texts Local) *gorgonia.Node
}

// Local are local features: the tokens of R images or texts as an Interaction compares them.
type Local struct {
	Rows    *gorgonia.Node // (R*Len, C) in the shared space, on a sphere unit vectors
	Raw     *gorgonia.Node // (R*Len, C), Rows before their norm
	Lengths *gorgonia.Node // (R) int32: tokens [First, Lengths[i]) of row i take part; nil: all from First on
	First   int
	Len     int
	All     bool // where this process is one of several, the rows are those of all
}

// TokenHead is a head that can map every token of a sequence as it maps a class token.
type TokenHead interface {
	Head
	// Raw maps rows (R, D) to (R, C) before the norm of the space.
	Raw(s Scope, x *gorgonia.Node) *gorgonia.Node
	// Normalize gives rows (R, C) of Raw the norm of the space.
	Normalize(x *gorgonia.Node) *gorgonia.Node
}

var _ TokenHead = Projection{}

// Local returns the tokens of q as local features from their rows before the norm, (R*Len, C).
// Class tokens and what stands around a text take part with all, else patches, words or regions
// alone.
func (q Sequence) Local(h TokenHead, raw *gorgonia.Node, all bool) Local {
	x := Local{Rows: h.Normalize(raw), Raw: raw, Lengths: q.Lengths, First: q.Begin, Len: q.Len}
	switch {
	case all:
		x.First = 0
	case q.End > 0:
		x.Lengths = layout.AddInt(q.Lengths, -q.End)
	}
	return x
}
