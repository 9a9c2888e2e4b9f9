package objectives

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/relation"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// KLOT is the regulariser of SOTAlign (arXiv 2602.23353): images and texts shall be as near to
// each other as a linear alignment of the frozen features says, which was fitted to the pairs
// before training. Both spaces give an entropic transport plan between the images and the texts
// of the step, and the loss is
//
//	KL(P* || P),  P* = plan of the reference's cosines / eps*,  P = plan of the scores / eps
//
// with the gradient (P - P*)/eps in the scores, those of the step's PairTerms. No row has to be
// in a pair: besides the batch there may be unpaired rows of both sides.
type KLOT struct {
	Weight                 float64
	Reference              *Reference
	Epsilon, TargetEpsilon float64    // of P and of P*
	Iterations             int        // of Sinkhorn at most
	Rows                   int        // R, rows that each step draws of each side besides; 0: the batch alone
	ImagePool, TextPool    batch.Pool // that they are drawn from
}

// Build implements Loss.
func (l KLOT) Build(s *Step) []Part {
	s = s.Whole()
	defer s.ofAll()()
	Need(l.Reference != nil, "klot", "needs the alignment that it keeps to: give it in model.Options.Reference, or set objective.klot.weight = 0")
	var image, text *gorgonia.Node
	if l.Rows > 0 {
		has := func(p batch.Pool) bool { return p != nil && p.Rows() > 0 }
		Need(has(l.ImagePool) && has(l.TextPool), "klot", "needs rows to draw from: give them in model.Options.ImagePool and TextPool, or set objective.klot.rows = 0")
		image, text = s.Draw("unpaired images", l.ImagePool, l.Rows), s.Draw("unpaired texts", l.TextPool, l.Rows)
	}
	x, y := s.withFurther(s.Online.Image, s.Student, image), s.withFurther(s.Online.Text, s.Student, text)
	loss, off := relation.PlanDivergence(relation.PlanArgs{
		Scores:  s.Scores.Bare(s.PairTerms, false).Pairs(x.after, y.after), // (B+R, B+R)
		Target:  similarity.Similarity(l.Reference.Image.apply(s, "image reference", x.before), l.Reference.Text.apply(s, "text reference", y.before), nil, nil),
		Epsilon: l.Epsilon, TargetEpsilon: l.TargetEpsilon, Iterations: l.Iterations, Tolerance: planTolerance,
	})
	return []Part{s.Part("klot", l.Weight, loss), {Name: "klot_off", Node: off, Measure: true}}
}

// planTolerance is the share by which row sums of a plan may be off: what float32 can tell.
const planTolerance = 1e-4
