package multimodal

import (
	"cmp"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// HeadName is the scope of the parameters of the head.
const HeadName = "task_head"

// texts is what the losses share: the classes of texts with one or two pictures, with momentum distillation as in
// ALBEF's published code (visual entailment, and model_nlvr.py): logits z and teacher's z'
//
//	L = (1-alpha) CE(z, label) + alpha H(softmax(z'), softmax(z))
//
// the mean over the texts with a label, batch.Labels; z are those of encoders.TaskHead over the first fused token. With
// two pictures a text passes fusion layers that attend to the pictures in turn (encoders.BERT.Pictures), and both
// pictures pass the image tower at once.
type texts struct {
	section.Weighted

	name    string // of the part
	classes int    // 0: as many as the data has
}

var (
	_ objectives.Fused      = (*texts)(nil)
	_ objectives.Columned   = (*texts)(nil)
	_ objectives.Classifier = (*texts)(nil)
)

// Gives implements section.Giver.
func (*texts) Gives() []section.Fact {
	return []section.Fact{section.FusedPairs, section.Soft, section.Downstream}
}

// Columns implements objectives.Columned.
func (*texts) Columns(h objectives.Host) (list []batch.Column) {
	if h.Has(section.TwoPictures) {
		size := section.Of[encoders.ImageOptions](h.Config).Size
		list = append(list, batch.Column{Name: batch.SecondImages, Shape: []int{3, size, size}})
	}
	return append(list, batch.Column{Name: batch.Labels, Type: batch.Int32})
}

// Prepare implements objectives.Fused.
func (*texts) Prepare(s *objectives.Step) {
	for _, r := range s.Distilled() {
		r.Image.Tokens, r.Image.Second, r.Text.Tokens = true, s.Has(section.TwoPictures), true
	}
}

// Pairs implements objectives.Fused: each text with its own pictures, read at its first token.
func (*texts) Pairs(s *objectives.Step, first int) objectives.FusedPairs {
	f := objectives.FusedPairs{Count: s.Rows, WholePlaces: s.Rows * s.Ranks.Size()}
	if s.Has(section.TwoPictures) {
		p := BothPictures(s.Inputs, s.Rows)
		f.Texts, f.Images, f.Second = gorgonia.Nodes{p.Texts}, gorgonia.Nodes{p.Images}, gorgonia.Nodes{p.Second}
	}
	f.Places = s.FirstTokens(first, s.Rows)
	return f
}

// BothPictures are the pairs of n texts with their own pictures, where the second pictures of all stand behind the
// first.
func BothPictures(in *feed.Inputs, n int) encoders.Pairs {
	own := in.Count("batch", 0, n, 1) // (n)
	return encoders.Pairs{Texts: own, Images: own, Second: in.Count("second pictures", n, n, 1)}
}

// Loss implements objectives.Fused.
func (l *texts) Loss(s *objectives.Step, states *gorgonia.Node) []objectives.Part {
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	// (B, K)
	x := contrast.CrossEntropyArgs{Logits: l.logits(s, s.Params, states), Labels: labels, Alpha: s.Alpha()}
	if x.Alpha != nil {
		first := s.FirstTokens(0, s.Rows)
		a := encoders.FusionArgs{
			Texts: s.Teacher.Text.Tokens, Lengths: s.Captions.Clean[batch.Lengths], Images: s.Teacher.Image.Tokens,
			At: &first, TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		}
		if s.Has(section.TwoPictures) {
			a.Pairs = BothPictures(s.Inputs, s.Rows)
		}
		// (B, K)
		x.Teacher = l.logits(s, s.MomentumParams, s.Fusion.BERT.Fusion(s.TeacherContext, s.Fusion.MomentumParams, a))
	}
	return s.Classification(l.name, l.Weight, x)
}

// Outputs implements objectives.Classifier.
func (l *texts) Outputs(s *objectives.Step, x objectives.Side) *gorgonia.Node {
	return l.logits(s, s.Params, x.Classes)
}

// logits are those of states (B, D) by the parameters below root, or by those of the teacher.
func (l *texts) logits(s *objectives.Step, root encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	t := encoders.Traits{Momentum: s.Has(section.TwoPictures) || s.HasTeacher()}
	return encoders.TaskHead{Classes: cmp.Or(l.classes, s.Classes)}.Forward(root.As(t).In(HeadName), states)
}
