package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// TCL adds the terms of triple contrastive learning to the contrast, whose loss is then the mean of all terms.
//
// See Yang et al. 2022.
type TCL struct {
	// image against image and text against text, in both cases against momentum features and the queue
	Intra bool `toml:"intra"`
	// parts of an image, and tokens of a text, against the whole
	Local bool `toml:"local"`
	// an image has grid x grid parts, each the mean of its patches
	Grid int `toml:"grid" when:"local" max:"1024"`
}

// Defaults implements section.Section.
func (t *TCL) Defaults() { *t = TCL{Grid: 4} }

// Check implements section.Section.
func (t *TCL) Check(k *section.Checker) {
	k.Positive("grid")
	for _, key := range []string{"intra", "local"} {
		if k.Value(key) == true {
			k.Needs(key, section.Captions)
			k.Require(key, section.Of[ITC](k).Weight > 0, "needs objective.itc.weight > 0",
				"its terms are part of the contrast against momentum features")
		}
	}
	if !t.Local {
		return
	}
	k.Needs("local", section.Tokens)
	k.Require("local", k.Value("model.image.style") != "regions" || k.Has(section.Stored), `must be false with model.image.style = "regions"`,
		"parts of an image are squares of its patches")
	space, err := headSpace(k)
	k.Require("local", err != nil || !space.Tokens, "must be false with several class tokens",
		"a part is one token, which has no m spheres: use objective.tcl.intra, or another topology")
	k.Training("train.accumulate", !accumulatesFeatures(k), `must be "gradients" with objective.tcl.local`,
		"it reads tokens of other micro-batches: set objective.tcl.local = false")
}

// parts returns the terms that triple contrastive learning adds to a contrast. They are
// part of its loss, so that here they are measures.
func (t TCL) parts(s *Step, c MomentumContrast) (parts []Part) {
	add := func(name string, n *gorgonia.Node) { parts = append(parts, Part{Name: name, Node: n, Measure: true}) }
	if t.Intra {
		i2i, t2t := c.Intra()
		add("itc_i2i", i2i)
		add("itc_t2t", t2t)
	}
	if t.Local {
		add("itc_local_image", t.localImage(s))
		add("itc_local_text", t.localText(s))
	}
	return parts
}

// rowProjector is a head that can project every token of a sequence like a class token.
type rowProjector interface {
	Rows(s encoders.Scope, x *gorgonia.Node) *gorgonia.Node
}

// rowsOf projects every token of a side.
func rowsOf(x Side, tokens *gorgonia.Node) *gorgonia.Node {
	head, ok := x.Head.(rowProjector)
	Need(ok && x.Len > 1, "itc_local", "needs towers of several tokens with a linear head: set objective.tcl.local = false")
	return head.Rows(x.Scope, tokens)
}

// directions returns rows (R, C) as a loss compares them that does so by their cosine: those of a
// Euclidean space have any length, and all others are unit vectors on their spheres already.
func directions(s *Step, rows *gorgonia.Node) *gorgonia.Node {
	if s.Scores.Space.Euclid {
		return nn.L2Normalize(rows, 1e-12)
	}
	return rows
}

// localImage is the contrast of an image with its grid x grid parts, the means of the
// teacher's projected patches.
func (t TCL) localImage(s *Step) *gorgonia.Node {
	side := s.Teacher.Image
	n := side.Len - side.Begin // patches, behind class tokens and registers
	edge := int(math.Sqrt(float64(n)))
	Need(edge*edge == n && side.Lengths == nil, "itc_local", "reads a square of patches, and the image tower gives %d tokens of another kind: set objective.tcl.local = false", n)
	patches := directions(s, rowsOf(side, side.Tokens)) // (B*T, C)
	all := s.Whole()
	return Local{
		Whole: directions(s, all.Online.Image.Features),
		Parts: s.Gather(contrast.PoolPatches(patches, side.Len, edge, t.Grid)), // (N*grid*grid, C)
		IDs:   all.IDs, Temperature: s.Scores.Divisor(),
	}.Build()
}

// localText is the contrast of a caption with its tokens, what begins a text, such as [CLS], left out.
func (t TCL) localText(s *Step) *gorgonia.Node {
	side := s.Teacher.Text
	states := side.Tokens
	if n := s.Rows * side.Len; states.Shape()[0] > n {
		states = layout.StridedRows(states, 0, 1, n) // masked captions come after them
	}
	all := s.Whole()
	return Local{
		Whole: directions(s, all.Online.Text.Features), Parts: s.Gather(directions(s, rowsOf(side, states))), // (N*L, C)
		Lengths: s.Gather(side.Lengths), First: side.Begin, IDs: all.IDs, Temperature: s.Scores.Divisor(),
	}.Build()
}
