package objectives

import (
	"math"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/similarity"
)

// SoftmaxName is the parameter of the classifier of Softmax.
const SoftmaxName = "softmax/weight"

// softmaxScale is what logits of unit vectors are multiplied with at the start.
const softmaxScale = 16

// Softmax classifies images by their identity, the column batch.IDs: the cross-entropy of the logits W f of features f, with
// label smoothing (Szegedy et al. 2016, section 7). W (Classes, C) starts as random directions of length 16 for
// features on the unit sphere, so that the first logits tell classes apart.
type Softmax struct {
	Weight    float64
	Classes   int
	Smoothing float64 // share of the target that is spread over all classes
}

var _ Preparer = Softmax{}

// Prepare implements Preparer.
func (l Softmax) Prepare(s *Step) { s.Reads.Online.Image.Features = true }

// Build implements Loss.
func (l Softmax) Build(s *Step) []Part {
	f, ids := s.Online.Image.Features, s.identities() // (B, C)
	dim := f.Shape()[1]
	w := s.Params.As(encoders.Traits{Settings: "objective.softmax.classes to that"}).Param(SoftmaxName, encoders.Normal(softmaxScale/math.Sqrt(float64(dim))), l.Classes, dim)
	logits := similarity.Similarity(f, w, nil, nil)
	a := contrast.CrossEntropyArgs{Logits: logits, Labels: ids}
	if l.Smoothing > 0 {
		a.Uniform = s.SharedFloats("label smoothing", []float32{float32(l.Smoothing)})
	}
	part := s.Part("softmax", l.Weight, s.mean(contrast.CrossEntropy(a), ids))
	part.Chance = math.Log(float64(l.Classes))
	return []Part{part, {Name: "softmax_accuracy", Node: s.mean(contrast.Accuracy(logits, ids), ids), Measure: true}}
}
