package objectives

import (
	"math"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Assignment is text assignment (Li et al. 2021, section 5, NLVR2, and their model_pretrain_nlvr.py): pre-training of
// fusion layers that read two pictures on images with captions. Of every three captions two are shown with their own
// image and a hard negative, in either order, and one with two different hard negatives. The first token of the caption
// tells, by a linear layer, whether it is of the first picture, the second or none:
//
//	L = CE(W x + b, answer)
//
// Negatives of caption i are drawn by softmax_j(f_i . f_j / 0.07) of the features of images, j != i, or with ids the
// images of other ids. No gradient flows through the draw, and there is no teacher. A batch is to have three images or
// more.
type Assignment struct {
	Weight float64

	labels *gorgonia.Node // (B) int32
}

// assignmentTemperature is that of the draw, which is not learned.
const assignmentTemperature = 0.07

// assignmentHead is the scope of the parameters of the head.
const assignmentHead = "assignment_head"

var _ Fused = (*Assignment)(nil)

// Prepare implements Fused.
func (*Assignment) Prepare(s *Step) {
	s.Reads.Online.Image.Tokens, s.Reads.Online.Image.Features, s.Reads.Online.Text.Tokens = true, true, true
}

// Pairs implements Fused.
func (l *Assignment) Pairs(s *Step, first int) FusedPairs {
	all := s.Whole()
	b := all.Rows
	noise, answers := make([]float32, b*b), make([]int32, b)
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Negatives, uint64(f.Counter))
		all.fillNoise(noise, r, f, gumbel)
		lo, hi, rows := all.share(f)
		for i := range rows {
			// Two of three are either order of the own picture and another.
			if v := int32(r.IntN(contrast.Assignments)); lo <= i && i < hi {
				answers[i-lo] = v
			}
		}
		return nil
	})
	f := all.Online.Image.Features
	logits := arith.Combine([]float32{1 / assignmentTemperature}, similarity.Similarity(f, f, nil, nil))       // (B, B)
	sampled := contrast.SamplePairs(logits, all.SharedFloats("noise of other pictures", noise, b, b), all.IDs) // (2B)
	kinds := s.SharedInts("assignments", answers, b)                                                           // (B)
	l.labels = contrast.AssignmentLabels(sampled, kinds)
	images, second := contrast.AssignedPictures(sampled, kinds, 0), contrast.AssignedPictures(sampled, kinds, 1)
	p := FusedPairs{WholePlaces: s.Rows * s.Ranks.size()}
	b = s.Rows
	if s.splits() {
		ofOwn := func(x *gorgonia.Node) *gorgonia.Node { return layout.GatherInts(x, s.Own()) } // (B) of (N)
		l.labels = ofOwn(l.labels)
		p.OtherImages = layout.ConcatInts(ofOwn(images), ofOwn(second)) // (2B)
		images, second = s.Count("first pictures", b, b, 1), s.Count("second pictures", 2*b, b, 1)
	}
	p.Count, p.Texts, p.Images, p.Second = b, gorgonia.Nodes{s.Count("batch", 0, b, 1)}, gorgonia.Nodes{images},
		gorgonia.Nodes{second}
	p.Places = s.Fusion.firstTokens(s, first, b)
	return p
}

// Loss implements Fused.
func (l *Assignment) Loss(s *Step, states *gorgonia.Node) []Part {
	// (B, 3)
	logits := encoders.Classifier{Classes: contrast.Assignments}.Forward(s.Params.In(assignmentHead), states, 1)
	part := s.Part("assignment", l.Weight,
		s.mean(contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Labels: l.labels}), l.labels))
	part.Chance = math.Log(contrast.Assignments)
	return []Part{part, {Name: "assignment_accuracy", Node: s.mean(contrast.Accuracy(logits, l.labels), l.labels),
		Measure: true}}
}
