package objectives

import (
	"math"

	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
)

// MCSE is the grounding of sentences of Zhang et al. (2022, "MCSE", equations 3 and 4): both passes z, z' of text i under
// dropout should find its image among those of the batch,
//
//	L = -1/2B sum_i sum_{h in z_i, z'_i} log exp(s(g(h), f(v_i))/tau) / sum_j exp(s(g(h), f(v_j))/tau)
//
// for the cosine s and heads g and f of the two sides, which are those of evaluation. There is one direction: texts search images.
type MCSE struct {
	Weight      float64 // the paper's lambda
	Temperature float64 // tau
}

var _ Preparer = MCSE{}

// Prepare implements Preparer.
func (l MCSE) Prepare(s *Step) {
	s.readTwice()
	s.Reads.Online.Image.Features = true
}

// Build implements Loss.
func (l MCSE) Build(s *Step) []Part {
	logits := cosineLogits(s.sentences(nil), s.Online.Image.Features, l.Temperature) // (2B, B)
	labels := layout.ConcatInts(s.Own(), s.Own())
	part := s.Part("mcse", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: labels}))
	part.Chance = math.Log(float64(s.Rows))
	return []Part{part, {Name: "mcse_accuracy", Node: contrast.Accuracy(logits, labels), Measure: true}}
}
