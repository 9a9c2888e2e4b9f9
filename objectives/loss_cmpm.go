package objectives

import (
	"math"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// CMPM is cross-modal projection matching (Zhang and Lu 2018): the softmax of the scores of a row shall be the
// distribution of its matches.
//
// It is over the pairs of a batch ("Deep Cross-Modal Projection Learning for Image-Text Matching", equations 1 to 5):
// the divergence of the softmax of each row from the distribution of its matches,
//
//	L = 1/B sum_i sum_j p_ij log(p_ij / (q_ij + 1e-8)),  p_i = softmax_j(Scale s_ij)
//
// plus the same over the columns, for scores s of PairScores. The paper's scores are
// projections of rows that have a length onto unit vectors; those of unit vectors need a Scale.
// Matches are pairs of one id where the step has ids, each with the same share q, as the paper
// has it; its code divides by the square root of their number.
type CMPM struct {
	section.Weighted
	ofPairs
	// scores are multiplied by this before the softmax: that of cosines alone is nearly flat
	Scale float64 `toml:"scale"`
}

var _ Preparer = (*CMPM)(nil)

// Defaults implements section.Defaulter.
func (l *CMPM) Defaults() { *l = CMPM{Scale: 1} }

// Check implements section.Checked.
func (l *CMPM) Check(k *section.Checker) {
	k.Between(1e-3, 1e4, "scale")
}

// Build implements Loss.
func (l *CMPM) Build(s *Step) []Part {
	s = s.Whole()
	part := s.Part("cmpm", l.Weight, s.bothWays(1/float64(s.Rows), func(scores *gorgonia.Node) *gorgonia.Node {
		return contrast.CMPM(scores, s.IDs, l.Scale)
	}))
	// Of p = 1/B: one match and B-1 others.
	const eps = 1e-8
	n := float64(s.Rows)
	part.Chance = -2 * (math.Log(n) + (math.Log(1+eps)+(n-1)*math.Log(eps))/n)
	return []Part{part}
}
