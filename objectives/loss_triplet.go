package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Triplet is the triplet loss of images with identities (Hermans et al. 2017). An anchor and its positive have one
// identity, its negative another. The score is that of objective.itc without the geodesic and without a temperature.
//
// See contrast.Triplet: the scores
// are those of PairTerms of the images of a batch with each other, the identities those of the column batch.IDs. The
// measure triplet_anchors counts the images that have a positive and a negative in the batch.
type Triplet struct {
	section.Weighted
	// hardest (of each image the farthest positive and the nearest negative of the batch) | all (the mean over all
	// triplets of the batch)
	Negatives string `toml:"negatives"`
	// the soft margin, log(1 + exp(difference)), instead of a margin
	Soft bool `toml:"soft"`
	// by which a positive shall be nearer than a negative
	Margin float64 `toml:"margin" when:"soft=false"`
}

var _ Preparer = (*Triplet)(nil)

// Defaults implements section.Defaulter.
func (l *Triplet) Defaults() { *l = Triplet{Margin: 0.3, Negatives: "hardest"} }

// Needs implements section.Needer.
func (*Triplet) Needs() []section.Fact { return []section.Fact{section.Identities} }

// Gives implements section.Giver.
func (*Triplet) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.Leading}
}

// Check implements section.Checked.
func (l *Triplet) Check(k *section.Checker) {
	k.Require("margin", l.Margin > 0 && l.Margin <= 1e4, "must be above 0 and at most 10000",
		"0.3 is what distances are trained with")
	k.OneOf("negatives", "hardest", "all")
	if l.On() && k.Has(section.Identities) {
		k.Require("data.identities.images", k.Number("data.identities.images") >= 2,
			"must be at least 2 with objective.triplet.weight > 0", "a triplet has two images of one identity")
	}
}

// Prepare implements Preparer.
func (l *Triplet) Prepare(s *Step) { s.Reads.Online.Image.Features = true }

// Build implements Loss.
func (l *Triplet) Build(s *Step) []Part {
	s = s.Whole()
	f, ids := s.Online.Image.Features, s.identities()
	// Row i is a query, the text of a score, column j an image of the gallery, which a learned metric folds into.
	scores := layout.Transpose(s.Scores.Bare(s.PairTerms, false).Pairs(f, f)) // (B, B)
	part := s.Part("triplet", l.Weight, contrast.Triplet(scores, ids,
		contrast.Triplets{Hardest: l.Negatives == "hardest", Soft: l.Soft, Margin: l.Margin}))
	if part.Chance = l.Margin; l.Soft {
		part.Chance = math.Ln2
	}
	return []Part{part, {Name: "triplet_anchors", Node: contrast.TripletAnchors(ids), Measure: true}}
}

// identities are the numbers of the identities of a batch, (B) int32.
func (s *Step) identities() *gorgonia.Node {
	return s.Column(batch.Column{Name: batch.IDs, Type: batch.Int32}, s.Rows)
}
