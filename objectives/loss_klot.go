package objectives

import (
	"cmp"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/relation"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// KLOT is the regulariser of SOTAlign (arXiv 2602.23353): the transport plan between the images and the texts of a
// batch stays near that of a linear alignment of the frozen features, which is fitted to the training pairs before the
// first step. Rows need not be in pairs.
//
// Images and texts shall be as near to each other as the alignment says. Both spaces give an entropic transport plan
// between the images and the texts of the step, and the loss is
//
//	KL(P* || P),  P* = plan of the reference's cosines / eps*,  P = plan of the scores / eps
//
// with the gradient (P - P*)/eps in the scores, those of the step's PairTerms. No row has to be
// in a pair: besides the batch there may be unpaired rows of both sides.
type KLOT struct {
	section.Weighted
	// the alignment that is fitted, with its settings in [model.align]: cca | procrustes
	Reference string `toml:"reference"`
	// of the plan of the trained scores, in their units: the smaller, the more a row looks at its nearest alone
	Epsilon float64 `toml:"epsilon"`
	// of the plan of the alignment's cosines; 0: epsilon
	TargetEpsilon float64 `toml:"target_epsilon"`
	// of Sinkhorn at most; klot_off in the log says by which share the rows of the plan are off at the end
	Iterations int `toml:"iterations" max:"100000"`
	// R, unpaired rows of each side that every step draws besides its batch, from all rows that training may see,
	// paired or not (data.pairs.paired, image_pool, text_pool); 0: none
	Rows int `toml:"rows" max:"65536"`
}

var _ Loss = (*KLOT)(nil)

// Defaults implements section.Defaulter.
func (l *KLOT) Defaults() { *l = KLOT{Reference: "cca", Epsilon: 0.3, Iterations: 100} }

// References are the values of objective.klot.reference: maps of one linear layer a side.
var References = []string{"cca", "procrustes"}

// Needs implements section.Needer.
func (*KLOT) Needs() []section.Fact { return []section.Fact{section.Stored} }

// Gives implements section.Giver.
func (*KLOT) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.Vectors, section.States, section.Beside}
}

// Target returns the eps of the alignment's plan.
func (l *KLOT) Target() float64 { return cmp.Or(l.TargetEpsilon, l.Epsilon) }

// Check implements section.Checked.
func (l *KLOT) Check(k *section.Checker) {
	k.NotNegative("rows")
	k.OneOf("reference", References...)
	const hint = "0.3 did well for cosines"
	k.Require("epsilon", l.Epsilon >= 1e-3 && l.Epsilon <= 1e3, "must be between 0.001 and 1000", hint)
	k.Require("target_epsilon", l.TargetEpsilon == 0 || l.TargetEpsilon >= 1e-3 && l.TargetEpsilon <= 1e3,
		"must be 0, or between 0.001 and 1000", hint)
	k.Positive("iterations")
}

// Build implements Loss.
func (l *KLOT) Build(s *Step) []Part {
	s = s.Whole()
	defer s.ofAll()()
	Need(s.Reference != nil, "klot", "needs the alignment that it keeps to: give it in model.Options.Reference, or set objective.klot.weight = 0")
	var image, text *gorgonia.Node
	if l.Rows > 0 {
		has := func(p batch.Pool) bool { return p != nil && p.Rows() > 0 }
		Need(has(s.ImagePool) && has(s.TextPool), "klot",
			"needs rows to draw from: give them in model.Options.ImagePool and TextPool, or set objective.klot.rows = 0")
		image, text = s.Draw("unpaired images", s.ImagePool, l.Rows), s.Draw("unpaired texts", s.TextPool, l.Rows)
	}
	x, y := s.withFurther(s.Online.Image, s.Student, image), s.withFurther(s.Online.Text, s.Student, text)
	loss, off := relation.PlanDivergence(relation.PlanArgs{
		Scores: s.Scores.Bare(s.PairTerms, false).Pairs(x.after, y.after), // (B+R, B+R)
		Target: similarity.Similarity(s.Reference.Image.apply(s, "image reference", x.before),
			s.Reference.Text.apply(s, "text reference", y.before), nil, nil),
		Epsilon: l.Epsilon, TargetEpsilon: l.Target(), Iterations: l.Iterations, Tolerance: planTolerance,
	})
	return []Part{s.Part("klot", l.Weight, loss), {Name: "klot_off", Node: off, Measure: true}}
}

// planTolerance is the share by which row sums of a plan may be off: what float32 can tell.
const planTolerance = 1e-4

// Reference is an alignment of both sides that was fitted before training and stays as it is:
// one linear layer each into a space of K channels, where rows are compared by their cosine.
type Reference struct{ Image, Text Layer }

// Layer is y = W x + b.
type Layer struct {
	Weight []float32 // (K, D), row by row
	Bias   []float32 // (K)
}

// referenceEps is the least length that a row is divided by.
const referenceEps = 1e-12

// apply maps rows (N, D) to unit rows (N, K).
func (l Layer) apply(s *Step, name string, rows *gorgonia.Node) *gorgonia.Node {
	k, d := len(l.Bias), rows.Shape()[1]
	Need(k > 0 && len(l.Weight) == k*d, name,
		"needs a weight (K, %d) and a bias (K) (got %d and %d values): fit the alignment to these features", d,
		len(l.Weight), k)
	weight, bias := s.SharedFloats(name+" weight", l.Weight, k, d), s.SharedFloats(name+" bias", l.Bias, k)
	return nn.L2Normalize(nn.Linear(rows, weight, bias), referenceEps)
}

// rowsOfSide are rows of a side: those of the batch and further ones.
type rowsOfSide struct {
	before *gorgonia.Node // (N, D) before the head
	after  *gorgonia.Node // (N, C) features
}

// withFurther returns the rows of the batch on a side and, behind them, rows (R, D) that pass
// its head; nil: none.
func (s *Step) withFurther(x Side, c *encoders.Context, further *gorgonia.Node) rowsOfSide {
	r := rowsOfSide{s.Backbone(x), x.Features}
	if further != nil {
		r.after = layout.ConcatRows(r.after, x.Head.Project(c, x.Scope, further)) // (B+R, C)
		r.before = layout.ConcatRows(r.before, further)                           // (B+R, D)
	}
	return r
}
