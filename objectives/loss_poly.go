package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// Poly is the polynomial loss of Wei et al. (2020): pairs and their hardest negatives are weighed by polynomials of
// their scores, which should lie in [-1, 1].
//
// Over the pairs of a batch ("Universal Weighting Metric Learning for Cross-Modal Matching", section 4) it is
//
//	L = 1/B sum_i (.2 p^2 - .7 p + .5)_+ + (.9 n^2 - .4 n + .03)_+,  p = s_ii, n = max_j s_ij
//
// plus the same over the columns, for scores s of PairScores and the negatives j of pair i. A
// row whose n is not above p - Margin has no loss, nor one whose p is 1 or more, which a learned
// metric may give.
type Poly struct {
	section.Weighted
	ofPairs
	// a pair whose hardest negative is further away than this has no loss
	Margin float64 `toml:"margin"`
}

var _ Preparer = (*Poly)(nil)

// Defaults implements section.Defaulter.
func (l *Poly) Defaults() { *l = Poly{Margin: 0.2} }

// Check implements section.Checked.
func (l *Poly) Check(k *section.Checker) {
	k.Between(0, 1e4, "margin")
}

// Build implements Loss.
func (l *Poly) Build(s *Step) []Part {
	s = s.Whole()
	part := s.Part("poly", l.Weight, s.bothWays(1/float64(s.Rows), func(scores *gorgonia.Node) *gorgonia.Node {
		return contrast.Poly(scores, s.IDs, l.Margin)
	}))
	part.Chance = 2 * (0.5 + 0.03) // p = n = 0
	return []Part{part}
}
