package objectives

import (
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Hinge is the triplet loss with a margin over the pairs of a batch (Faghri et al. 2018, "VSE++", equations 4 and 5),
// which trains region-word systems. The score is that of model.interaction, or of objective.itc without the geodesic.
//
// It is the sum over both directions and the batch,
//
//	L = sum_i max_j (g + s_ij - s_ii)_+ + max_j (g + s_ji - s_ii)_+
//
// for scores s of PairScores and the negatives j of pair i, or the sum over them in the place
// of each maximum. Pairs of one id are no negatives, where the step has ids.
//
// Where images have two masked views (Zhu et al. 2023, "ESA"), each view is an image of the first term, and the second
// term has the scores of Worst: a text is compared with the farther view of its image and the nearer ones of others.
type Hinge struct {
	section.Weighted
	ofPairs
	// by which a pair shall be nearer than a negative
	Margin float64 `toml:"margin"`
	// hardest (the nearest negative of a row or column) | all (their sum)
	Negatives string `toml:"negatives"`
	// the first steps have all negatives; 0: as warmup_epochs says
	WarmupSteps int `toml:"warmup_steps" when:"negatives=hardest" max:"1000000000"`
	// the same in epochs, 1 in VSE-infinity; at most one of the two
	WarmupEpochs float64 `toml:"warmup_epochs" when:"negatives=hardest" max:"1000000000"`
}

var _ Preparer = (*Hinge)(nil)

// Defaults implements section.Defaulter.
func (l *Hinge) Defaults() { *l = Hinge{Margin: 0.2, Negatives: "hardest"} }

// Check implements section.Checked.
func (l *Hinge) Check(k *section.Checker) {
	k.NotNegative("warmup_steps", "warmup_epochs")
	k.Require("margin", l.Margin > 0 && l.Margin <= 1e4, "must be above 0 and at most 10000",
		"0.2 is what cosines are trained with")
	k.OneOf("negatives", "hardest", "all")
}

// Build implements Loss.
func (l Hinge) Build(s *Step) []Part {
	s = s.Whole()
	warm := Ramp{To: 1, Steps: l.WarmupSteps, Epochs: l.WarmupEpochs}
	hardest := s.Floats("hardest negatives", func(f *feed.Step, dst []float32) error {
		if dst[0] = 0; l.Negatives == "hardest" && warm.At(f.Update, f.PerEpoch) == 1 {
			dst[0] = 1
		}
		return nil
	})
	rows := func(scores *gorgonia.Node) *gorgonia.Node { return contrast.Hinge(scores, s.IDs, hardest, l.Margin) }
	sum, directions := (*gorgonia.Node)(nil), 2.0
	if view := s.ViewScores(); view != nil {
		scores := s.PairScores()
		sum, directions = arith.WeightedSum([]float32{1, 1, 1}, rows(scores), rows(view),
			rows(layout.Transpose(contrast.Worst(scores, view)))), 3
	} else {
		sum = s.bothWays(1, rows)
	}
	part := s.Part("hinge", l.Weight, sum)
	part.Chance = directions * l.Margin * float64(s.Rows)
	if l.Negatives == "all" {
		part.Chance *= float64(s.Rows - 1)
	}
	return []Part{part}
}
