package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/similarity"
)

// SoftmaxName is the parameter of the classifier of Softmax.
const SoftmaxName = "softmax/weight"

// softmaxScale is what logits of unit vectors are multiplied with at the start.
const softmaxScale = 16

// Softmax is the classification of images by their identity, with a linear classifier over features that have no part
// in the search (the "ID loss" of re-identification).
//
// Identities are the column batch.IDs. The loss is the cross-entropy of the logits W f of features f, with
// label smoothing (Szegedy et al. 2016, section 7). W (Classes, C) starts as random directions of length 16 for
// features on the unit sphere, so that the first logits tell classes apart.
type Softmax struct {
	section.Weighted
	// rows of the classifier, at least the identities of the training data
	Classes int `toml:"classes" fixed:"model" max:"16777216"`
	// share of the target that is spread over all classes (label smoothing)
	Smoothing float64 `toml:"smoothing"`
}

var _ Preparer = (*Softmax)(nil)

// Defaults implements section.Defaulter.
func (l *Softmax) Defaults() { *l = Softmax{Smoothing: 0.1} }

// Needs implements section.Needer.
func (*Softmax) Needs() []section.Fact { return []section.Fact{section.Identities} }

// Check implements section.Checked.
func (l *Softmax) Check(k *section.Checker) {
	k.NotNegative("classes")
	k.Require("classes", !l.On() || l.Classes >= 2, "must be at least 2",
		"the number of identities of the training data")
	k.BelowOne("smoothing")
}

// Prepare implements Preparer.
func (l *Softmax) Prepare(s *Step) { s.Reads.Online.Image.Features = true }

// Build implements Loss.
func (l *Softmax) Build(s *Step) []Part {
	f, ids := s.Online.Image.Features, s.identities() // (B, C)
	dim := f.Shape()[1]
	w := s.Params.As(encoders.Traits{Settings: "objective.softmax.classes to that"}).Param(SoftmaxName,
		encoders.Normal(softmaxScale/math.Sqrt(float64(dim))), l.Classes, dim)
	logits := similarity.Similarity(f, w, nil, nil)
	a := contrast.CrossEntropyArgs{Logits: logits, Labels: ids}
	if l.Smoothing > 0 {
		a.Uniform = s.SharedFloats("label smoothing", []float32{float32(l.Smoothing)})
	}
	part := s.Part("softmax", l.Weight, s.mean(contrast.CrossEntropy(a), ids))
	part.Chance = math.Log(float64(l.Classes))
	return []Part{part, {Name: "softmax_accuracy", Node: s.mean(contrast.Accuracy(logits, ids), ids), Measure: true}}
}
