package objectives

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// ReadPairs says that a loss reads PairScores. It is for Prepare.
func (s *Step) ReadPairs() {
	for _, r := range []*Read{&s.Reads.Online.Image, &s.Reads.Online.Text} {
		if s.Interaction != nil {
			r.Tokens = true
		} else {
			r.Features = true
		}
	}
}

// ofPairs is what a loss over PairScores within the batch embeds.
type ofPairs struct{}

// Needs implements section.Needer.
func (ofPairs) Needs() []section.Fact { return []section.Fact{section.Captions} }

// Gives implements section.Giver.
func (ofPairs) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.BatchImages, section.Leading}
}

// Prepare implements Preparer.
func (ofPairs) Prepare(s *Step) { s.ReadPairs() }

// PairScores returns the scores (B, B) of the batch's images with its texts before any
// temperature: by Interaction where the system has one, else by PairTerms of the features. Every
// loss within the batch reads them. Where there are several ranks a loss reads those of Whole, (N, N), or by features
// those of its own images with the texts of all, (B, N).
func (s *Step) PairScores() *gorgonia.Node {
	image, text := s.Online.Image, s.Online.Text
	if s.Interaction == nil {
		return s.pairScoresOf(image.Features)
	}
	if s.pairScores == nil { // once, since dropout in it would differ
		if s.own != nil { // own images with the texts of all
			image = *image.own
			s.pairScores = s.own.Gather(s.Interaction.Scores(s.Student, s.Params, s.own.local(image), s.local(text)))
			return s.pairScores
		}
		s.pairScores = s.Interaction.Scores(s.Student, s.Params, s.local(image), s.local(text))
	}
	return s.pairScores
}

// ViewScores are PairScores of the second masked views of the images; nil without.
func (s *Step) ViewScores() *gorgonia.Node {
	view := s.Online.Image.View
	if view == nil || s.Interaction != nil {
		return nil
	}
	return s.pairScoresOf(view)
}

// pairScoresOf are PairScores of images by their features (B, C): of the batch's own rows with the texts of all, (B,
// N).
func (s *Step) pairScoresOf(images *gorgonia.Node) *gorgonia.Node {
	if s.Interaction != nil {
		return s.PairScores()
	}
	return s.Scores.Bare(s.PairTerms, false).Pairs(images, s.Gather(s.Online.Text.Features))
}

// local are the local features of a side as Interaction compares them.
func (s *Step) local(x Side) encoders.Local { return s.localOf("interaction", x, s.AllTokens) }

// bothWays returns w times the sum of a loss over the rows of PairScores and that over their
// columns, where it reads the scores as rows.
func (s *Step) bothWays(w float64, rows func(scores *gorgonia.Node) *gorgonia.Node) *gorgonia.Node {
	scores := s.PairScores()
	return arith.WeightedSum([]float32{float32(w), float32(w)}, rows(scores), rows(layout.Transpose(scores)))
}
