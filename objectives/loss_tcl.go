package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
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

// Defaults implements section.Defaulter.
func (t *TCL) Defaults() { *t = TCL{Grid: 4} }

// Check implements section.Checked.
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
	k.Require("local", k.Value("model.image.style") != "regions" || k.Has(section.Stored),
		`must be false with model.image.style = "regions"`, "parts of an image are squares of its patches")
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
	Need(edge*edge == n && side.Lengths == nil, "itc_local",
		"reads a square of patches, and the image tower gives %d tokens of another kind: set objective.tcl.local = false", n)
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
		// (N*L, C)
		Whole: directions(s, all.Online.Text.Features), Parts: s.Gather(directions(s, rowsOf(side, states))),
		Lengths: s.Gather(side.Lengths), First: side.Begin, IDs: all.IDs, Temperature: s.Scores.Divisor(),
	}.Build()
}

// Local is the local mutual information of one modality in triple contrastive learning
// (Yang et al. 2022, section 3.3): within a batch, each part of a sample
// must be nearer to its own sample as a whole than the parts of other samples are,
//
//	s_i,jq = whole_i . part_jq / tau
//	L      = mean_i mean_p -log( exp(s_i,ip) / (exp(s_i,ip) + sum_{j /= i, q} exp(s_i,jq)) )
//
// where parts are momentum features and a gradient flows to the whole and to tau only. As
// in TCL's code the mean over the tokens of a text comes before the mean over texts,
// parts are unit vectors before they are averaged but not after it, and the score is the
// cosine whatever that of the contrast is, also in a Euclidean space: there is no queue of
// parts that a graph could span.
type Local struct {
	Whole       *gorgonia.Node // (B, C) unit rows
	Parts       *gorgonia.Node // (B*P, C) parts of sample i in rows [i*P, (i+1)*P)
	Lengths     *gorgonia.Node // (B) int32, or nil: parts from there on are padding
	First       int            // first part that counts: 1 leaves a class token out
	IDs         *gorgonia.Node // (B) int32, or nil: samples of one id are no negatives
	Temperature Temperature
}

// Build adds the loss to the step.
func (l Local) Build() *gorgonia.Node {
	s := l.Temperature.Divide(similarity.Similarity(l.Whole, op.Detach(l.Parts), nil, nil)) // (B, B*P)
	return contrast.LocalContrast(contrast.LocalArgs{Logits: s, Lengths: l.Lengths, IDs: l.IDs, First: l.First})
}

// Mean returns the mean of scalar losses, the rule by which the terms of triple
// contrastive learning make one loss.
func Mean(terms ...*gorgonia.Node) *gorgonia.Node {
	weights := make([]float32, len(terms))
	for i := range weights {
		weights[i] = 1 / float32(len(terms))
	}
	return arith.WeightedSum(weights, terms...)
}

// Intra returns the contrast within each modality (Yang et al. 2022, section
// 3.2): image against images and text against texts, with the momentum
// feature of the own sample, of another view of the image, as the positive. Targets have
// no share of the teacher's, and the score is that of the contrast across modalities.
func (c MomentumContrast) Intra() (i2i, t2t *gorgonia.Node) {
	term := func(f *gorgonia.Node, from Modality, b *Bank) *gorgonia.Node {
		return contrast.CrossEntropy(contrast.CrossEntropyArgs{
			Logits: c.Score.Logits(b, f, from, c.Positives), Cols: b.Cols,
			Labels: c.Positives.Labels, RowIDs: c.Positives.RowIDs, ColIDs: c.Positives.ColIDs,
		})
	}
	return term(c.Image, Image, c.ImageBank), term(c.Text, Text, c.TextBank)
}
