package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// MAFA handles false negatives: a frozen model relabels the hardest negatives of matching.
type MAFA struct {
	// checkpoint or run folder of the frozen model with a match head; empty: off
	Connector string `toml:"connector"`
	// a negative that the connector matches with more than this probability becomes a positive
	PositiveAbove float64 `toml:"positive_above" when:"connector"`
	// below this it stays a negative; in between the second hardest takes its place
	NegativeBelow float64 `toml:"negative_below" when:"connector"`
	// share of a uniform distribution in the targets of the contrast from the second epoch on
	Uniform float64 `toml:"uniform" when:"targets"`
}

// Defaults implements section.Defaulter.
func (m *MAFA) Defaults() { *m = MAFA{PositiveAbove: 0.8, NegativeBelow: 0.5} }

// Check implements section.Checked.
func (m *MAFA) Check(k *section.Checker) {
	k.Share("positive_above")
	k.Require("negative_below", m.NegativeBelow >= 0 && m.NegativeBelow <= m.PositiveAbove,
		"must be between 0 and objective.mafa.positive_above")
	k.BelowOne("uniform")
	k.Require("uniform", m.Uniform == 0 || section.Of[ITC](k).On(),
		"needs objective.itc.weight or objective.itc.in_batch_weight > 0", "it is a part of the contrast's targets")
	k.Require("connector", m.Connector == "" || section.Of[ITM](k).On(), "needs objective.itm.weight > 0",
		"it relabels the negatives of matching")
}

// Relabelling handles false negatives as MAFA does (Byun et al. 2023):
// the hardest negative of each image and text, the one with the highest score of the
// contrast, is judged by a frozen matching model, the connector. A pair that it takes for
// a match with a probability above Above becomes a positive, one below Below stays a
// negative, and in between the second hardest takes its place as a negative, unjudged.
type Relabelling struct {
	Above, Below float64
	// IDs (B) int32 are the image ids, or nil: pairs of one id are no negatives.
	IDs *gorgonia.Node
	// Judge returns the connector's logits (R, 2), class 1 meaning match, of pairs of a
	// text and an image of the batch, each (R) int32.
	Judge func(texts, images *gorgonia.Node) *gorgonia.Node
}

// Relabelled is what became of the hardest negatives of a batch.
type Relabelled struct {
	Texts, Images contrast.Relabelled // of each image a text, of each text an image
}

// Build relabels by the logits (B, M) of the contrast in both directions, whose first B
// columns are the batch. own (B) int32 holds 0, 1, ... B-1.
func (r Relabelling) Build(i2t, t2i, own *gorgonia.Node) Relabelled {
	b := own.Shape()[0]
	text, secondText := contrast.HardestNegatives(i2t, r.IDs)                      // of each image
	image, secondImage := contrast.HardestNegatives(t2i, r.IDs)                    // of each text
	logits := r.Judge(layout.ConcatInts(text, own), layout.ConcatInts(own, image)) // (2B, 2)
	return Relabelled{
		Texts:  contrast.Relabel(text, secondText, layout.StridedRows(logits, 0, 1, b), r.Above, r.Below),
		Images: contrast.Relabel(image, secondImage, layout.StridedRows(logits, b, 1, b), r.Above, r.Below),
	}
}

// Labels returns the labels (3B) of matching for the rows (T_i, I_i), (T_i, image of text
// i), (text of image i, I_i), as MatchingLabels does. ones is (B) int32 of value 1.
func (r Relabelled) Labels(ones *gorgonia.Node) *gorgonia.Node {
	return layout.ConcatInts(ones, r.Images.Labels, r.Texts.Labels)
}

// Positives returns how many negatives became positives, a scalar.
func (r Relabelled) Positives() *gorgonia.Node {
	return arith.WeightedSum([]float32{1, 1}, r.Texts.Positives, r.Images.Positives)
}

// Replaced returns how many negatives were replaced by the second hardest, a scalar.
func (r Relabelled) Replaced() *gorgonia.Node {
	return arith.WeightedSum([]float32{1, 1}, r.Texts.Replaced, r.Images.Replaced)
}
