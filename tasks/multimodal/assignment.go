package multimodal

import (
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// AssignmentLoss is pre-training for objective.nlvr on images with captions (Li et al. 2021, section 5, "text
// assignment"): of which of two images is the caption, or of none? Fusion layers are those of objective.nlvr, which can
// start from the checkpoint.
//
// As in their model_pretrain_nlvr.py, of every three captions two are shown with their own image and a hard negative,
// in either order, and one with two different hard negatives. The first token of the caption tells, by a linear layer,
// whether it is of the first picture, the second or none:
//
//	L = CE(W x + b, answer)
//
// Negatives of caption i are drawn by softmax_j(f_i . f_j / 0.07) of the features of images, j != i, or with ids the
// images of other ids. No gradient flows through the draw, and there is no teacher. A batch is to have three images or
// more.
type AssignmentLoss struct {
	section.Weighted

	labels *gorgonia.Node // (B) int32
}

// assignmentTemperature is that of the draw, which is not learned.
const assignmentTemperature = 0.07

// assignmentHead is the scope of the parameters of the head.
const assignmentHead = "assignment_head"

var _ objectives.Fused = (*AssignmentLoss)(nil)

// Gives implements section.Giver: it has no teacher.
func (*AssignmentLoss) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Downstream, section.TwoPictures}
}

// Check implements section.Checked.
func (l *AssignmentLoss) Check(k *section.Checker) {
	checkTwo(k, l.On())
	k.Training("train.batch_size", !l.On() || k.Number("train.batch_size") > 2,
		"must be at least 3 with objective.assignment", "a caption is shown with two other images of the batch")
}

// Prepare implements objectives.Fused.
func (*AssignmentLoss) Prepare(s *objectives.Step) {
	s.Reads.Online.Image.Tokens, s.Reads.Online.Image.Features, s.Reads.Online.Text.Tokens = true, true, true
}

// Pairs implements objectives.Fused.
func (l *AssignmentLoss) Pairs(s *objectives.Step, first int) objectives.FusedPairs {
	all := s.Whole()
	b := all.Rows
	noise, answers := make([]float32, b*b), make([]int32, b)
	s.OnFill(func(f *feed.Step) error {
		r := rng.New(s.Seed, rng.Negatives, uint64(f.Counter))
		all.FillGumbel(noise, r, f)
		lo, hi, rows := all.Share(f)
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
	p := objectives.FusedPairs{WholePlaces: s.Rows * s.Ranks.Size()}
	b = s.Rows
	if all != s {
		ofOwn := func(x *gorgonia.Node) *gorgonia.Node { return layout.GatherInts(x, s.Own()) } // (B) of (N)
		l.labels = ofOwn(l.labels)
		p.OtherImages = layout.ConcatInts(ofOwn(images), ofOwn(second)) // (2B)
		images, second = s.Count("first pictures", b, b, 1), s.Count("second pictures", 2*b, b, 1)
	}
	p.Count, p.Texts, p.Images, p.Second = b, gorgonia.Nodes{s.Count("batch", 0, b, 1)}, gorgonia.Nodes{images},
		gorgonia.Nodes{second}
	p.Places = s.FirstTokens(first, b)
	return p
}

// Loss implements objectives.Fused.
func (l *AssignmentLoss) Loss(s *objectives.Step, states *gorgonia.Node) []objectives.Part {
	// (B, 3)
	logits := encoders.Classifier{Classes: contrast.Assignments}.Forward(s.Params.In(assignmentHead), states, 1)
	return s.Classification("assignment", l.Weight, contrast.CrossEntropyArgs{Logits: logits, Labels: l.labels})
}
