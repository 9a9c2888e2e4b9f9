package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// PairHeadName is the parameters of the head of SentencePairs.
const PairHeadName = "pair_head"

// SentencePairs is fine-tuning on pairs of sentences: the cross-entropy of the classes, the column batch.Labels, or the
// mean squared difference to the scores, batch.Scores. Scores run from 0 to 1, by which the least and the largest of
// the task are replaced; a cosine is compared with these as it is, as in sentence-transformers.
type SentencePairs struct {
	Weight    float64
	Head      encoders.PairHead
	Joint     bool    // both sentences are one text; else they are two that pass the tower at once
	Low, High float64 // least and largest score
}

var _ Preparer = SentencePairs{}

// Prepare implements Preparer.
func (l SentencePairs) Prepare(s *Step) {
	if s.Reads.Online.Text.Features = true; !l.Joint {
		s.Reads.Online.Text.Behind = []batch.Text{batch.PositiveText}
	}
}

// Outputs are logits (B, Classes) or scores (B, 1).
func (l SentencePairs) Outputs(c *encoders.Context, root encoders.Scope, x Side) *gorgonia.Node {
	s := root.As(encoders.Traits{Settings: "data.sentence_pairs.task to one of as many classes"}).In(PairHeadName)
	if l.Joint {
		return l.Head.Joint(c, s, x.Classes)
	}
	return l.Head.Separate(s, x.Classes, x.Behind)
}

// Build implements Loss.
func (l SentencePairs) Build(s *Step) []Part {
	y := l.Outputs(s.Student, s.Params, s.Online.Text)
	if l.Head.Classes > 0 {
		labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
		part := s.Part("pairs", l.Weight,
			s.mean(contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: y, Labels: labels}), labels))
		part.Chance = math.Log(float64(l.Head.Classes))
		return []Part{part, {Name: "pairs_accuracy", Node: s.mean(contrast.Accuracy(y, labels), labels), Measure: true}}
	}
	s.Read(batch.Column{Name: batch.Scores})
	want := s.Floats("scores from 0 to 1", func(f *feed.Step, dst []float32) error {
		for i, v := range f.Batch.Floats(batch.Scores) {
			dst[i] = float32((float64(v) - l.Low) / (l.High - l.Low))
		}
		return nil
	}, s.Rows, 1)
	return []Part{s.Part("pairs", l.Weight, arith.Mean(arith.Square(arith.Combine([]float32{1, -1}, y, want))))}
}
