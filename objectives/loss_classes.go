package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// ClassHeadName is the parameters of the head of Classes.
const ClassHeadName = "class_head"

// Classes is fine-tuning of an image tower for classification: the cross-entropy of the logits of Head with the
// classes, the column batch.Labels, with label smoothing (Szegedy et al. 2016, section 7):
//
//	mean_i -sum_k y_ik log softmax(logits)_ik,  y_i = (1-Smoothing) [k = label_i] + Smoothing/K
//
// An image without a class is left out. Of mixed images the target is lambda y_i + (1-lambda) y_(B-1-i). As the loss is
// linear in the target, that is the same sum of the losses with either label.
type Classes struct {
	Weight    float64
	Head      encoders.ClassHead
	Smoothing float64
	Mix       Mix
	Images    batch.Column // that the tower reads, (C, height, width); for Mix
}

var _ Preparer = Classes{}

// Prepare implements Preparer.
func (l Classes) Prepare(s *Step) {
	s.Reads.Online.Image.Features = true
	if l.Mix.on() {
		l.Mix.prepare(s, l.Images)
	}
}

// Logits are what the head makes of class tokens x (B, D): (B, K).
func (l Classes) Logits(root encoders.Scope, x *gorgonia.Node) *gorgonia.Node {
	return l.Head.Logits(root.As(encoders.Traits{Settings: "the data to one of as many classes as that"}).In(
		ClassHeadName), x)
}

// Build implements Loss.
func (l Classes) Build(s *Step) []Part {
	logits := l.Logits(s.Params, s.Online.Image.Classes) // (B, K)
	entropy := func(labels *gorgonia.Node) *gorgonia.Node {
		a := contrast.CrossEntropyArgs{Logits: logits, Labels: labels}
		if l.Smoothing > 0 {
			a.Uniform = s.SharedFloats("label smoothing", []float32{float32(l.Smoothing)})
		}
		return s.mean(contrast.CrossEntropy(a), labels)
	}
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	loss, parts := entropy(labels), []Part(nil)
	if l.Mix.on() {
		loss = arith.Add(arith.MulScalar(loss, s.Node(mixOwn)),
			arith.MulScalar(entropy(l.Mix.labels(s)), s.Node(mixOther)))
	} else {
		parts = append(parts, Part{Name: "classes_accuracy", Node: s.mean(contrast.Accuracy(logits, labels), labels),
			Measure: true})
	}
	part := s.Part("classes", l.Weight, loss)
	part.Chance = math.Log(float64(l.Head.Classes))
	return append([]Part{part}, parts...)
}
