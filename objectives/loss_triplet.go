package objectives

import (
	"math"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// Triplet is the triplet loss of images with identities (Hermans et al. 2017), see contrast.Triplet: the scores
// are those of PairTerms of the images of a batch with each other, the identities those of the column batch.IDs. The
// measure triplet_anchors counts the images that have a positive and a negative in the batch.
type Triplet struct {
	Weight  float64
	Margin  float64 // of no meaning with Soft
	Soft    bool
	Hardest bool // the hardest positive and negative of each image, else all triplets
}

var _ Preparer = Triplet{}

// Prepare implements Preparer.
func (l Triplet) Prepare(s *Step) { s.Reads.Online.Image.Features = true }

// Build implements Loss.
func (l Triplet) Build(s *Step) []Part {
	s = s.Whole()
	f, ids := s.Online.Image.Features, s.identities()
	// Row i is a query, the text of a score, column j an image of the gallery, which a learned metric folds into.
	scores := layout.Transpose(s.Scores.Bare(s.PairTerms, false).Pairs(f, f)) // (B, B)
	part := s.Part("triplet", l.Weight, contrast.Triplet(scores, ids, contrast.Triplets{Hardest: l.Hardest, Soft: l.Soft, Margin: l.Margin}))
	if part.Chance = l.Margin; l.Soft {
		part.Chance = math.Ln2
	}
	return []Part{part, {Name: "triplet_anchors", Node: contrast.TripletAnchors(ids), Measure: true}}
}

// identities are the numbers of the identities of a batch, (B) int32.
func (s *Step) identities() *gorgonia.Node {
	return s.Column(batch.Column{Name: batch.IDs, Type: batch.Int32}, s.Rows)
}
