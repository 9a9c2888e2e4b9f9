package objectives

import (
	"cmp"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
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

// TokenTeacher is a ScoreTeacher that compares tokens.
type TokenTeacher interface {
	ScoreTeacher
	// Local adds inputs of the tokens of a side to a step: (B*Len, C).
	Local(s *Step, side Modality) encoders.Local
	// Interaction compares them, by a metric where the score of a pair is made.
	Interaction(metric encoders.Metric) encoders.Interaction
	// Frozen are the values of a parameter of it.
	Frozen(name string, shape ...int) ([]float32, error)
}

// DistillScores is distillation from a frozen teacher (GSSF, section III-B): the scores that another model, a run of
// its own, gives the pairs of a batch are targets of the scores of this one, row by row and column by column.
//
// By the divergence of Zhang et al. (2018, "Deep Mutual Learning", equation 5),
//
//	L = 1/B sum_i KL(p^T_i || p^S_i) + 1/B sum_j KL(p^T_.j || p^S_.j),  p = softmax(scores / Temperature)
//
// over rows i and columns j, for scores S of PairScores and those of the teacher, T. With Metric these are
// x^T W y of the teacher's features, or those of its interaction with x^T W y for the products of its tokens that are
// scores, such as the cosines of SCAN: W, the parameter teacher/gssf/weight, is learned by the cross entropy of p^T with
// the right answers of rows and columns, a part of the total of the same weight. No gradient passes
// from the divergence to W.
type DistillScores struct {
	// checkpoint or run folder of the frozen model, which reads images and texts as this run makes them; empty: off
	Teacher string `toml:"teacher"`
	// of the loss in the total
	Weight float64 `toml:"weight" max:"1000000"`
	// by which the scores of both are divided before their softmax
	Temperature float64 `toml:"temperature" max:"1000000"`
	// learned metric of the teacher's features, or of the tokens that it compares, trained with the student: empty
	// (none) | diag | block_diag | dense
	Metric string `toml:"metric" fixed:"run"`
	// of metric block_diag, a divisor of the teacher's channels; 0: of 16 channels each
	Blocks int `toml:"blocks" when:"metric=block_diag" fixed:"run" max:"65536"`
}

var _ Preparer = (*DistillScores)(nil)

// Defaults implements section.Defaulter.
func (l *DistillScores) Defaults() { *l = DistillScores{Weight: 1, Temperature: 1} }

// On implements section.Switched.
func (l *DistillScores) On() bool { return l.Teacher != "" }

// Switches implements section.Switcher.
func (*DistillScores) Switches() []string { return []string{"teacher"} }

// Needs implements section.Needer.
func (*DistillScores) Needs() []section.Fact { return []section.Fact{section.Captions} }

// Gives implements section.Giver.
func (*DistillScores) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.BatchImages}
}

// Check implements section.Checked.
func (l *DistillScores) Check(k *section.Checker) {
	k.OneOfOrEmpty("metric", encoders.MetricDiag, encoders.MetricBlockDiag, encoders.MetricDense)
	k.NotNegative("blocks")
	k.Positive("weight", "temperature")
	if !l.On() {
		return
	}
	k.Training("train.accumulate", !accumulatesFeatures(k), `must be "gradients" with objective.distill_scores.teacher`,
		"the teacher scores the pairs of one micro-batch")
	k.Training("data.cache_features", k.Value("data.cache_features") == false,
		"must be false with objective.distill_scores.teacher", "the teacher reads images and texts")
}

// MetricOf is the metric of a teacher of so many channels, without a form where there is none.
func (l *DistillScores) MetricOf(dim int) (m encoders.Metric, err error) {
	if m.Form, m.Dim = l.Metric, dim; l.Metric != encoders.MetricBlockDiag {
		return m, nil
	}
	if m.Blocks = cmp.Or(l.Blocks, max(1, dim/16)); dim%m.Blocks != 0 {
		return m, section.Errors{{Path: "objective.distill_scores.blocks", Value: l.Blocks,
			Msg:  fmt.Sprintf("must divide the %d channels of the teacher", dim),
			Hint: "choose a divisor: the blocks have one size"}}
	}
	return m, nil
}

// Prepare implements Preparer.
func (l *DistillScores) Prepare(s *Step) {
	if s.ScoreTeacher != nil {
		s.ReadPairs()
	}
}

// Build implements Loss.
func (l *DistillScores) Build(s *Step) []Part {
	if s.ScoreTeacher == nil { // it evaluates, but Step says so
		return nil
	}
	s = s.Whole()
	s.Read(s.ScoreTeacher.Columns()...)
	scale := []float32{float32(1 / l.Temperature)}
	student, teacher := arith.Combine(scale, s.PairScores()), arith.Combine(scale, l.scores(s)) // (B, B)
	var terms gorgonia.Nodes
	for _, x := range [][2]*gorgonia.Node{{student, teacher}, {layout.Transpose(student), layout.Transpose(teacher)}} {
		of := contrast.CrossEntropyArgs{Labels: s.Own(), Teacher: op.Detach(x[1]),
			Alpha: s.SharedFloats("one", []float32{1})}
		of.Logits = x[0]
		cross := contrast.CrossEntropy(of) // H(p^T, p^S)
		of.Logits = of.Teacher
		terms = append(terms, cross, contrast.CrossEntropy(of)) // H(p^T)
	}
	parts := []Part{s.Part("distill_scores", l.Weight, arith.WeightedSum([]float32{1, -1, 1, -1}, terms...))}
	if l.Metric != "" {
		own := Positives{Labels: s.Own()}
		if s.IDs != nil {
			own = Positives{RowIDs: s.IDs, ColIDs: s.IDs}
		}
		parts = append(parts, s.Part("distill_scores_teacher", l.Weight, InBatchContrast(teacher, own).Loss))
	}
	return parts
}

// scores are those of the teacher, (B, B).
func (l *DistillScores) scores(s *Step) *gorgonia.Node {
	if l.Metric == "" && s.own == nil {
		return s.Floats("teacher/scores",
			func(f *feed.Step, dst []float32) error { return s.ScoreTeacher.Scores(f.Batch, dst) }, s.Rows, s.Rows)
	}
	of := s
	if s.own != nil {
		of = s.own
		Need(s.ScoreTeacher.Dim() > 0, "distill_scores",
			`the teacher compares tokens, which processes do not exchange: set parallel.contrast = "local", or train on one process`)
	}
	if x, ok := s.ScoreTeacher.(TokenTeacher); ok {
		images, texts := x.Local(s, Image), x.Local(s, Text)
		params := encoders.NewScope(frozen{x, s})
		return x.Interaction(l.metric(images.Rows.Shape()[1])).Scores(&encoders.Context{}, params, images, texts)
	}
	side := func(name string, m Modality) *gorgonia.Node {
		return of.Gather(s.Floats(name, func(f *feed.Step,
			dst []float32) error {
			return s.ScoreTeacher.Features(f.Batch, m, dst)
		}, of.Rows, s.ScoreTeacher.Dim()))
	}
	if l.Metric == "" {
		return nn.Linear(side("teacher/images", Image), side("teacher/texts", Text), nil)
	}
	scores := Scores{Params: s.Params.In("teacher"), Metric: l.metric(s.ScoreTeacher.Dim()),
		Space: space.Space{Dim: s.ScoreTeacher.Dim(), Spheres: 1, Euclid: true}}
	return scores.Bare(Terms{{Kind: scoring.GSSF, Weight: 1}}, false).Pairs(side("teacher/images", Image),
		side("teacher/texts", Text))
}

// metric is MetricOf in a step.
func (l *DistillScores) metric(dim int) encoders.Metric {
	metric, err := l.MetricOf(dim)
	Need(err == nil, "distill_scores", "%w", err)
	return metric
}

// frozen are the parameters of the interaction of a teacher, of which its metric alone is one of the step's.
type frozen struct {
	teacher TokenTeacher
	s       *Step
}

// Param implements encoders.Weights.
func (f frozen) Param(name string, t encoders.Traits, init encoders.Init, shape ...int) *gorgonia.Node {
	if t.Group == encoders.GroupMetric {
		return f.s.Params.In("teacher").As(t).Param(name, init, shape...)
	}
	values, err := f.teacher.Frozen(name, shape...)
	Need(err == nil, "distill_scores", "%w", err)
	return f.s.SharedFloats("teacher/"+name, values, shape...)
}
