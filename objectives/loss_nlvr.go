package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// NLVR tells whether a statement is true of two pictures (NLVR2; Li et al. 2021, section 5, and their model_nlvr.py): the
// statement passes fusion layers that attend to the pictures in turn (encoders.BERT.Pictures), its first token gives the logits
// z, class 1 meaning true, and with those z' of the teacher
//
//	L = (1-alpha) CE(z, label) + alpha H(softmax(z'), softmax(z))
//
// is the mean over the statements with a label, batch.Labels. Both pictures pass the image tower at once. The teacher sees the
// same pictures.
type NLVR struct {
	Weight float64
	Head   encoders.TaskHead
	Size   int // side of a picture in pixels
}

var (
	_ Fused    = NLVR{}
	_ Columned = NLVR{}
)

// Columns implements Columned.
func (l NLVR) Columns() []batch.Column {
	return []batch.Column{{Name: batch.SecondImages, Shape: []int{3, l.Size, l.Size}}, {Name: batch.Labels, Type: batch.Int32}}
}

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

// Pairs implements Fused: each statement with both of its pictures, read at its first token.
func (NLVR) Pairs(s *Step, first int) FusedPairs {
	p := BothPictures(s.Inputs, s.Rows)
	return FusedPairs{
		Count: s.Rows, Texts: gorgonia.Nodes{p.Texts}, Images: gorgonia.Nodes{p.Images}, Second: gorgonia.Nodes{p.Second},
		Places: s.Fusion.firstTokens(s, first, s.Rows), WholePlaces: s.Rows * s.Ranks.size(),
	}
}

// BothPictures are the pairs of n texts with their own pictures, where the second pictures of all stand behind the first.
func BothPictures(in *feed.Inputs, n int) encoders.Pairs {
	own := in.Count("batch", 0, n, 1) // (n)
	return encoders.Pairs{Texts: own, Images: own, Second: in.Count("second pictures", n, n, 1)}
}

// Loss implements Fused.
func (l NLVR) Loss(s *Step, states *gorgonia.Node) []Part {
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	x := contrast.CrossEntropyArgs{Logits: l.logits(s.Params, states), Labels: labels, Alpha: s.Alpha()} // (B, 2)
	if x.Alpha != nil {
		first := s.Fusion.firstTokens(s, 0, s.Rows)
		x.Teacher = l.logits(s.MomentumParams, s.Fusion.Fusion(s.TeacherContext, s.Fusion.MomentumParams, encoders.FusionArgs{
			Texts: s.Teacher.Text.Tokens, Lengths: s.Captions.Clean[batch.Lengths], Images: s.Teacher.Image.Tokens,
			Pairs: BothPictures(s.Inputs, s.Rows), At: &first, TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		})) // (B, 2)
	}
	part := s.Part("nlvr", l.Weight, s.mean(contrast.CrossEntropy(x), labels))
	part.Chance = math.Log(float64(l.Head.Classes))
	return []Part{part, {Name: "nlvr_accuracy", Node: s.mean(contrast.Accuracy(x.Logits, labels), labels), Measure: true}}
}

// logits are those of states (B, D) by the parameters of s, or by their momentum copies.
func (l NLVR) logits(s encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	return l.Head.Forward(s.As(encoders.Traits{Momentum: true}).In(TaskHead), states)
}
