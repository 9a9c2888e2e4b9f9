package objectives

import (
	"math"

	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// NLVR tells whether a statement is true of two pictures (NLVR2; Li et al. 2021, section 5, and their model_nlvr.py): the
// statement passes fusion layers that attend to the pictures in turn (encoders.BERT.Pictures), and its first token x gives the
// logits, class 1 meaning true, and the loss:
//
//	z = W_2 ReLU(W_1 x + b_1) + b_2
//	L = (1-alpha) CE(z, label) + alpha H(softmax(z_teacher), softmax(z))
//
// the mean over the statements with a label. Both pictures pass the image tower at once, and so does the teacher's side, which
// sees the same pictures.
type NLVR struct{ Weight float64 }

var _ Fused = NLVR{}

// NLVRHead is the scope of the parameters of the head: fc1 and fc2.
const NLVRHead = "nlvr_head"

// Prepare implements Fused.
func (NLVR) Prepare(s *Step) {
	sides := []*SideReads{&s.Reads.Online}
	if s.Alpha() != nil {
		sides = append(sides, &s.Reads.Teacher)
	}
	for _, r := range sides {
		r.Image.Tokens, r.Image.Second, r.Text.Tokens = true, true, true
	}
}

// Pairs implements Fused.
func (NLVR) Pairs(s *Step, first int) FusedPairs {
	b := s.Rows
	own := s.Count("batch", 0, b, 1) // (B)
	return FusedPairs{
		Count: b, Texts: gorgonia.Nodes{own}, Images: gorgonia.Nodes{own}, Second: gorgonia.Nodes{s.Count("second pictures", b, b, 1)},
		Places: encoders.Places{
			Rows:      s.Count("first tokens of statements", first*s.Fusion.TextLen, b, s.Fusion.TextLen),
			Sequences: s.Count("statements", first, b, 1),
		},
	}
}

// Loss implements Fused.
func (l NLVR) Loss(s *Step, states *gorgonia.Node) []Part {
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	logits := NLVRLogits(s.Params, states)
	var teacher *gorgonia.Node
	alpha := s.Alpha()
	if alpha != nil {
		p := l.Pairs(s, 0)
		teacher = NLVRLogits(s.Twins, s.Fusion.Fusion(s.Mentor, s.Fusion.Twins, encoders.FusionArgs{
			Texts: s.Teacher.Text.Tokens, Lengths: s.Captions.Clean[batch.Lengths], Images: s.Teacher.Image.Tokens, At: &p.Places,
			Pairs:   encoders.Pairs{Texts: p.Texts[0], Images: p.Images[0], Second: p.Second[0]},
			TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		})) // (B, 2)
	}
	part := s.Part("nlvr", l.Weight, contrast.CrossEntropy(contrast.CrossEntropyArgs{Logits: logits, Teacher: teacher, Labels: labels, Alpha: alpha}))
	part.Chance = math.Ln2
	return []Part{part, {Name: "nlvr_accuracy", Node: contrast.Accuracy(logits, labels), Measure: true}}
}

// NLVRLogits returns the logits (R, 2) for the fused states (R, D) of the first tokens of statements. s is the scope of the model's
// parameters or of their twins.
func NLVRLogits(s encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	head := encoders.MLP{Space: space.Space{Dim: 2, Euclid: true}, Layers: 1, Hidden: states.Shape()[1], Activation: "relu"}
	return head.Rows(s.As(encoders.Traits{Twin: true}).In(NLVRHead), states)
}
