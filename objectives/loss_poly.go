package objectives

import (
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Poly is the polynomial loss of Wei et al. (2020, "Universal Weighting Metric Learning for
// Cross-Modal Matching", section 4) over the pairs of a batch,
//
//	L = 1/B sum_i (.2 p^2 - .7 p + .5)_+ + (.9 n^2 - .4 n + .03)_+,  p = s_ii, n = max_j s_ij
//
// plus the same over the columns, for scores s of PairScores and the negatives j of pair i. A
// row whose n is not above p - Margin has no loss, nor one whose p is 1 or more, which a learned
// metric may give.
type Poly struct{ Weight, Margin float64 }

var _ Preparer = Poly{}

// Prepare implements Preparer.
func (l Poly) Prepare(s *Step) { s.ReadPairs() }

// Build implements Loss.
func (l Poly) Build(s *Step) []Part {
	s = s.Whole()
	part := s.Part("poly", l.Weight, s.bothWays(1/float64(s.Rows), func(scores *gorgonia.Node) *gorgonia.Node {
		return contrast.Poly(scores, s.IDs, l.Margin)
	}))
	part.Chance = 2 * (0.5 + 0.03) // p = n = 0
	return []Part{part}
}
