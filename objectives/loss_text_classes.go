package objectives

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
)

// TaskHead is the scope of the parameters of the classifier of a downstream task.
const TaskHead = "task_head"

// TextClasses predicts the classes of texts with one or two pictures, with momentum distillation as in ALBEF's
// published code (visual entailment, and model_nlvr.py): logits z and teacher's z'
//
//	L = (1-alpha) CE(z, label) + alpha H(softmax(z'), softmax(z))
//
// the mean over the texts with a label, batch.Labels; z are those of encoders.TaskHead over the first fused token. With
// two pictures a text passes fusion layers that attend to the pictures in turn (encoders.BERT.Pictures), and both
// pictures pass the image tower at once.
type TextClasses struct {
	Name     string // of the part
	Weight   float64
	Head     encoders.TaskHead
	Pictures int // of a text, 1 or 2
	Size     int // side of a picture in pixels
}

var (
	_ Fused    = TextClasses{}
	_ Columned = TextClasses{}
)

// Columns implements Columned.
func (l TextClasses) Columns() (list []batch.Column) {
	if l.Pictures == 2 {
		list = append(list, batch.Column{Name: batch.SecondImages, Shape: []int{3, l.Size, l.Size}})
	}
	return append(list, batch.Column{Name: batch.Labels, Type: batch.Int32})
}

// Prepare implements Fused.
func (l TextClasses) Prepare(s *Step) {
	for _, r := range s.distilled() {
		r.Image.Tokens, r.Image.Second, r.Text.Tokens = true, l.Pictures == 2, true
	}
}

// Pairs implements Fused: each text with its own pictures, read at its first token.
func (l TextClasses) Pairs(s *Step, first int) FusedPairs {
	f := FusedPairs{Count: s.Rows, WholePlaces: s.Rows * s.Ranks.size()}
	if l.Pictures == 2 {
		p := BothPictures(s.Inputs, s.Rows)
		f.Texts, f.Images, f.Second = gorgonia.Nodes{p.Texts}, gorgonia.Nodes{p.Images}, gorgonia.Nodes{p.Second}
	}
	f.Places = s.Fusion.firstTokens(s, first, s.Rows)
	return f
}

// BothPictures are the pairs of n texts with their own pictures, where the second pictures of all stand behind the
// first.
func BothPictures(in *feed.Inputs, n int) encoders.Pairs {
	own := in.Count("batch", 0, n, 1) // (n)
	return encoders.Pairs{Texts: own, Images: own, Second: in.Count("second pictures", n, n, 1)}
}

// Loss implements Fused.
func (l TextClasses) Loss(s *Step, states *gorgonia.Node) []Part {
	labels := s.Column(batch.Column{Name: batch.Labels, Type: batch.Int32}, s.Rows)
	// (B, Classes)
	x := contrast.CrossEntropyArgs{Logits: l.logits(s, s.Params, states), Labels: labels, Alpha: s.Alpha()}
	if x.Alpha != nil {
		first := s.Fusion.firstTokens(s, 0, s.Rows)
		a := encoders.FusionArgs{
			Texts: s.Teacher.Text.Tokens, Lengths: s.Captions.Clean[batch.Lengths], Images: s.Teacher.Image.Tokens,
			At: &first, TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		}
		if l.Pictures == 2 {
			a.Pairs = BothPictures(s.Inputs, s.Rows)
		}
		// (B, Classes)
		x.Teacher = l.logits(s, s.MomentumParams, s.Fusion.BERT.Fusion(s.TeacherContext, s.Fusion.MomentumParams, a))
	}
	part := s.Part(l.Name, l.Weight, s.mean(contrast.CrossEntropy(x), labels))
	part.Chance = math.Log(float64(l.Head.Classes))
	return []Part{part, {Name: l.Name + "_accuracy", Node: s.mean(contrast.Accuracy(x.Logits, labels), labels),
		Measure: true}}
}

// logits are those of states (B, D) by the parameters below root, or by those of the teacher.
func (l TextClasses) logits(s *Step, root encoders.Scope, states *gorgonia.Node) *gorgonia.Node {
	t := encoders.Traits{Momentum: l.Pictures == 2 || s.HasTeacher()}
	return l.Head.Forward(root.As(t).In(TaskHead), states)
}

// firstTokens are the first tokens of n fused pairs, which first pairs stand before.
func (f *Fusion) firstTokens(s *Step, first, n int) encoders.Places {
	return encoders.Places{Rows: s.Count("first tokens of pairs", first*f.TextLen, n, f.TextLen),
		Sequences: s.Count("pairs", first, n, 1), Whole: s.stacked(n / s.Rows)}
}
