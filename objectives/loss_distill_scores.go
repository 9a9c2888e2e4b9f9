package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// ScoreTeacher is a frozen model that has been trained before.
type ScoreTeacher interface {
	// Columns are the columns of a batch that it reads.
	Columns() []batch.Column
	// Dim is C, the channels of its features; 0 where it compares tokens.
	Dim() int
	// Scores writes the scores (B, B) of the images of a batch with its texts.
	Scores(b *batch.Batch, dst []float32) error
	// Features writes features (B, C) whose products are these scores.
	Features(b *batch.Batch, side Modality, dst []float32) error
}

// DistillScores is distillation from a frozen teacher by the scores of a batch (GSSF, section III-B; the divergence of
// Zhang et al. 2018, "Deep Mutual Learning", equation 5),
//
//	L = 1/B sum_i KL(p^T_i || p^S_i) + 1/B sum_j KL(p^T_.j || p^S_.j),  p = softmax(scores / Temperature)
//
// over rows i and columns j, for scores S of PairScores and those of the teacher, T. With Metric these are
// x^T W y of the teacher's features: W, the parameter teacher/gssf/weight, is learned by the cross entropy of p^T with
// the right answers of rows and columns, a part of the total of the same weight. No gradient passes
// from the divergence to W.
type DistillScores struct {
	Weight, Temperature float64
	Teacher             ScoreTeacher
	Metric              encoders.Metric // of no form: none
}

var _ Preparer = DistillScores{}

// Prepare implements Preparer.
func (l DistillScores) Prepare(s *Step) { s.ReadPairs() }

// Build implements Loss.
func (l DistillScores) Build(s *Step) []Part {
	s = s.Whole()
	s.Read(l.Teacher.Columns()...)
	scale := []float32{float32(1 / l.Temperature)}
	student, teacher := arith.Combine(scale, s.PairScores()), arith.Combine(scale, l.scores(s)) // (B, B)
	var terms gorgonia.Nodes
	for _, x := range [][2]*gorgonia.Node{{student, teacher}, {layout.Transpose(student), layout.Transpose(teacher)}} {
		of := contrast.CrossEntropyArgs{Labels: s.Own(), Teacher: op.Detach(x[1]), Alpha: s.SharedFloats("one", []float32{1})}
		of.Logits = x[0]
		cross := contrast.CrossEntropy(of) // H(p^T, p^S)
		of.Logits = of.Teacher
		terms = append(terms, cross, contrast.CrossEntropy(of)) // H(p^T)
	}
	parts := []Part{s.Part("distill_scores", l.Weight, arith.WeightedSum([]float32{1, -1, 1, -1}, terms...))}
	if l.Metric.Form != "" {
		own := Positives{Labels: s.Own()}
		if s.IDs != nil {
			own = Positives{RowIDs: s.IDs, ColIDs: s.IDs}
		}
		parts = append(parts, s.Part("distill_scores_teacher", l.Weight, InBatchContrast(teacher, own).Loss))
	}
	return parts
}

// scores are those of the teacher, (B, B).
func (l DistillScores) scores(s *Step) *gorgonia.Node {
	if l.Metric.Form == "" && s.own == nil {
		return s.Floats("teacher/scores", func(f *feed.Step, dst []float32) error { return l.Teacher.Scores(f.Batch, dst) }, s.Rows, s.Rows)
	}
	of := s
	if s.own != nil {
		of = s.own
		Need(l.Teacher.Dim() > 0, "distill_scores", `the teacher compares tokens, which processes do not exchange: set parallel.contrast = "local", or train on one process`)
	}
	side := func(name string, m Modality) *gorgonia.Node {
		return of.Gather(s.Floats(name, func(f *feed.Step, dst []float32) error { return l.Teacher.Features(f.Batch, m, dst) }, of.Rows, l.Teacher.Dim()))
	}
	if l.Metric.Form == "" {
		return nn.Linear(side("teacher/images", Image), side("teacher/texts", Text), nil)
	}
	scores := Scores{Params: s.Params.In("teacher"), Metric: l.Metric, Space: space.Space{Dim: l.Teacher.Dim(), Spheres: 1, Euclid: true}}
	return scores.Bare(Terms{{Kind: scoring.GSSF, Weight: 1}}, false).Pairs(side("teacher/images", Image), side("teacher/texts", Text))
}
