package objectives

import (
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

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
	Need(k > 0 && len(l.Weight) == k*d, name, "needs a weight (K, %d) and a bias (K) (got %d and %d values): fit the alignment to these features", d, len(l.Weight), k)
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
