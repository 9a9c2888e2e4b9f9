package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// TaskHead is the scope of the parameters of the classifier of a downstream task.
const TaskHead = "task_head"

// Entailment is visual entailment with momentum distillation as in ALBEF's published code: for rows of B pictures with a hypothesis,
// logits z and teacher's z'
//
//	L = (1-alpha) CE(z, label) + alpha H(softmax(z'), softmax(z))
//
// the mean over the batch; z are those of encoders.TaskHead over the first fused token. Labels are batch.Labels.
type Entailment struct {
	Weight float64
	Head   encoders.TaskHead
}

var (
	_ Fused    = Entailment{}
	_ Columned = Entailment{}
)

// Columns implements Columned.
func (Entailment) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Labels, Type: batch.Int32}}
}

// Prepare implements Fused.
func (l Entailment) Prepare(s *Step) {
	s.Reads.Online.Image.Tokens, s.Reads.Online.Text.Tokens = true, true
	if s.Alpha() != nil {
		s.Reads.Teacher.Image.Tokens, s.Reads.Teacher.Text.Tokens = true, true
	}
}

// Pairs implements Fused: each text with its own picture, read at its first token.
func (l Entailment) Pairs(s *Step, first int) FusedPairs {
	return FusedPairs{Count: s.Rows, Places: s.Fusion.firstTokens(s, first, s.Rows), WholePlaces: s.Rows * s.Ranks.size()}
}

// Loss implements Fused.
func (l Entailment) Loss(s *Step, states *gorgonia.Node) []Part {
	labels := s.Column(l.Columns()[0], s.Rows)
	x := contrast.CrossEntropyArgs{Logits: l.Head.Forward(s.taskHead(s.Params), states), Labels: labels, Alpha: s.Alpha()} // (B, Classes)
	if x.Alpha != nil {
		first := s.Fusion.firstTokens(s, 0, s.Rows)
		teacher := s.Fusion.BERT.Fusion(s.TeacherContext, s.Fusion.MomentumParams, encoders.FusionArgs{
			Texts: s.Teacher.Text.Tokens, Lengths: s.Captions.Clean[batch.Lengths], Images: s.Teacher.Image.Tokens, At: &first,
			TextLen: s.Fusion.TextLen, ImageLen: s.Fusion.ImageLen,
		}) // (B, D)
		x.Teacher = l.Head.Forward(s.taskHead(s.MomentumParams), teacher) // (B, Classes)
	}
	part := s.Part("entailment", l.Weight, s.mean(contrast.CrossEntropy(x), labels))
	part.Chance = math.Log(float64(l.Head.Classes))
	return []Part{part, {Name: "entailment_accuracy", Node: s.mean(contrast.Accuracy(x.Logits, labels), labels), Measure: true}}
}

// taskHead is the scope of the classifier of a downstream task below params or momentum copies.
func (s *Step) taskHead(root encoders.Scope) encoders.Scope {
	return root.As(encoders.Traits{Momentum: s.HasTeacher()}).In(TaskHead)
}

// firstTokens are the first tokens of n fused pairs, which first pairs stand before.
func (f *Fusion) firstTokens(s *Step, first, n int) encoders.Places {
	return encoders.Places{Rows: s.Count("first tokens of pairs", first*f.TextLen, n, f.TextLen), Sequences: s.Count("pairs", first, n, 1), Whole: s.stacked(n / s.Rows)}
}
