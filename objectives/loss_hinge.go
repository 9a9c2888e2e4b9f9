package objectives

import (
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Hinge is the triplet loss with a margin over the pairs of a batch (Faghri et al. 2018,
// "VSE++", equations 4 and 5), the sum over both directions and the batch,
//
//	L = sum_i max_j (g + s_ij - s_ii)_+ + max_j (g + s_ji - s_ii)_+
//
// for scores s of PairScores and the negatives j of pair i, or the sum over them in the place
// of each maximum. Pairs of one id are no negatives, where the step has ids.
//
// Where images have two masked views (Zhu et al. 2023, "ESA"), each view is an image of the first term, and the second
// term has the scores of Worst: a text is compared with the farther view of its image and the nearer ones of others.
type Hinge struct {
	Weight  float64
	Margin  float64 // g
	Hardest bool    // the maximum, else the sum
	// Warmup and WarmupEpochs are how long the sum stands in the place of the maximum, the longer
	// of the two.
	Warmup       int
	WarmupEpochs float64
}

var _ Preparer = Hinge{}

// Prepare implements Preparer.
func (l Hinge) Prepare(s *Step) { s.ReadPairs() }

// Build implements Loss.
func (l Hinge) Build(s *Step) []Part {
	s = s.Whole()
	warm := Ramp{To: 1, Steps: l.Warmup, Epochs: l.WarmupEpochs}
	hardest := s.Floats("hardest negatives", func(f *feed.Step, dst []float32) error {
		if dst[0] = 0; l.Hardest && warm.At(f.Update, f.PerEpoch) == 1 {
			dst[0] = 1
		}
		return nil
	})
	rows := func(scores *gorgonia.Node) *gorgonia.Node { return contrast.Hinge(scores, s.IDs, hardest, l.Margin) }
	sum, directions := (*gorgonia.Node)(nil), 2.0
	if view := s.ViewScores(); view != nil {
		scores := s.PairScores()
		sum, directions = arith.WeightedSum([]float32{1, 1, 1}, rows(scores), rows(view), rows(layout.Transpose(contrast.Worst(scores, view)))), 3
	} else {
		sum = s.bothWays(1, rows)
	}
	part := s.Part("hinge", l.Weight, sum)
	part.Chance = directions * l.Margin * float64(s.Rows)
	if !l.Hardest {
		part.Chance *= float64(s.Rows - 1)
	}
	return []Part{part}
}
