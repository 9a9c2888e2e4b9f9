package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// HardNegatives draws for every image a text, and for every text an image, that is
// no positive but scores high in the contrast (Li et al. 2021, section 3.2). Both
// results are (B) int32 indices into the batch; an index equal to its own row says
// that the batch has no negative for it.
//
// noiseI2T and noiseT2I are (B, B) standard Gumbel noise; ids (B) int32 are the
// image ids, or nil if only the own pair is a positive; floor is added to each probability,
// 0 is the reference's law.
func HardNegatives(c Contrast, noiseI2T, noiseT2I, ids *gorgonia.Node, floor float64) (texts, images *gorgonia.Node) {
	return contrast.SampleNegatives(c.I2T, noiseI2T, ids, false, floor), contrast.SampleNegatives(c.T2I, noiseT2I, ids, false, floor)
}

// MatchingLabels returns the labels (3B) of image-text matching for the rows
// (T_i, I_i), (T_i, negative image), (negative text, I_i): 1, 0, 0, and ignored
// where there was no negative. ones is (B) int32 of value 1.
func MatchingLabels(ones, negImages, negTexts *gorgonia.Node) *gorgonia.Node {
	return layout.ConcatInts(ones, contrast.NegativeLabels(negImages), contrast.NegativeLabels(negTexts))
}

// MatchHead is the scope of the parameters of the match head, and MatchWeight the name of its
// weight, which says that a model has one.
const (
	MatchHead   = "itm_head"
	MatchWeight = MatchHead + "/weight"
)

// MatchLogits returns the logits (R, 2) of the match head, class 1 meaning match, for the
// fused states (R, D) of the first tokens of pairs (Li et al. 2021, section 3.2).
func MatchLogits(s encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	return encoders.Classifier{Classes: 2}.Forward(s.In(MatchHead), states, 1)
}

// Matching is the image-text matching loss: the mean cross-entropy of logits (3B, 2)
// against labels (3B), class 1 meaning match (Li et al. 2021, eq. 3).
func Matching(logits, labels *gorgonia.Node) *gorgonia.Node {
	return contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: labels})
}
