package objectives

import (
	"slices"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/contrast"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// What contrasts and matching share within a step: the logits that negatives are drawn by,
// the targets, and what the judge says of the hardest negatives.

// Similarities are the logits of both directions that negatives are drawn by: those of the
// first contrast that was built, or of the contrast within the batch where none was.
func (s *Step) Similarities() Contrast {
	if s.similarities.I2T == nil {
		s.within()
	}
	return s.similarities
}

// offer keeps the logits of a contrast as the Similarities unless one was built before.
func (s *Step) offer(c Contrast) {
	if s.similarities.I2T == nil {
		s.similarities = c
	}
}

// positives are those within the batch: the own pair of each row, or all of its id.
func (s *Step) positives() Positives {
	if s.IDs != nil {
		return Positives{RowIDs: s.IDs, ColIDs: s.Gather(s.IDs)}
	}
	return Positives{Labels: s.Own()}
}

// within is the contrast within the batch. By NegativeTerms it offers other logits than its
// own to draw negatives by.
func (s *Step) within() Contrast {
	if s.Interaction != nil && s.splits() {
		return s.Whole().within()
	}
	score := s.Scores.Score(s.PairTerms, false)
	if s.tiles() {
		return Contrast{Loss: s.tiled(score)}
	}
	i2t := score.Temperature.Divide(s.pairScoresOf(s.Online.Image.Features)) // (B, N)
	c := inBatch(i2t, s.textsOf(score, i2t), s.targets(s.positives(), nil))
	by := c
	if s.similarities.I2T == nil && s.NegativeTerms != nil {
		score := s.Scores.Score(s.NegativeTerms, false)
		by.I2T = score.Pairs(s.Online.Image.Features, s.Gather(s.Online.Text.Features))
		by.T2I = s.textsOf(score, by.I2T)
	}
	s.offer(by)
	return c
}

// Tiles says whether the contrast within the batch can do without memory for its logits: they are products of features,
// with one positive for each row, and no other contrast and no matching is there to read them.
func Tiles(v section.Viewer) bool {
	l := section.Of[ITC](v)
	products := !slices.ContainsFunc(ScoreTerms(v), func(t ScoreTerm) bool {
		mlp := t.Kind == scoring.GSSF && section.Of[GSSF](v).Form == encoders.MetricMLP
		return mlp || !slices.Contains([]scoring.Kind{scoring.Cosine, scoring.Inner, scoring.GSSF}, t.Kind)
	})
	return l.InBatchWeight > 0 && l.Weight == 0 && l.Positives == "pair" && products && !section.Of[ITM](v).On()
}

// tiles says whether this step's does.
func (s *Step) tiles() bool {
	return s.TileFrom > 0 && s.Rows*s.All() >= s.TileFrom && Tiles(s.Config) && s.Interaction == nil && s.Judge == nil &&
		s.Uniform == 0
}

// tiled is the loss of within by tiles.
func (s *Step) tiled(score Score) *gorgonia.Node {
	images, w := score.fold(s.Online.Image.Features, Image)
	images, texts := score.Temperature.Divide(combine([]float32{w}, gorgonia.Nodes{images})), s.Online.Text.Features
	if !s.splits() {
		return contrast.Tiled(images, texts, s.Own(), true)
	}
	return Mean(contrast.Tiled(images, s.Gather(texts), s.Own(), false),
		contrast.Tiled(texts, s.Gather(images), s.Own(), false))
}

// textsOf are the logits of the batch's texts with all images, (B, N), where i2t (B, N) are those of its images with
// all texts.
func (s *Step) textsOf(score Score, i2t *gorgonia.Node) *gorgonia.Node {
	if s.splits() {
		i2t = score.Pairs(s.Gather(s.Online.Image.Features), s.Online.Text.Features) // (N, B)
	}
	return layout.Transpose(i2t)
}

// targets adds to the positives of a contrast what all of them share: a share of the
// uniform distribution, and the hardest negatives that the judge takes for matches.
// columns (B) int32 is where the batch is among the columns, nil for 0, 1, ... B-1.
func (s *Step) targets(p Positives, columns *gorgonia.Node) Positives {
	if share := s.Uniform; share > 0 {
		p.Uniform = s.Floats("uniform share", func(f *feed.Step, dst []float32) error {
			if dst[0] = float32(share); float64(f.Update) < f.PerEpoch { // from the second epoch on
				dst[0] = 0
			}
			return nil
		})
	}
	if s.Judge != nil {
		p.Further = func(i2t, t2i *gorgonia.Node) (texts, images *gorgonia.Node) {
			r := s.relabel(i2t, t2i)
			if columns == nil && s.splits() {
				columns = s.Own()
			}
			if columns == nil {
				return r.Texts.Positive, r.Images.Positive
			}
			return contrast.LookUpColumns(columns, r.Texts.Positive), contrast.LookUpColumns(columns, r.Images.Positive)
		}
	}
	return p
}

// relabel judges the hardest negatives, once: by the logits that the first caller gives. Its
// measures go before the parts of the loss that is being built.
func (s *Step) relabel(i2t, t2i *gorgonia.Node) *Relabelled {
	if s.relabelled == nil {
		r := s.Relabelling
		r.IDs = s.IDs
		r.Judge = func(texts, images *gorgonia.Node) *gorgonia.Node { return s.Judge(s, texts, images) }
		x := r.Build(s.ownColumns(i2t), s.ownColumns(t2i), s.Count("batch", 0, s.Rows, 1))
		s.relabelled = &x
		s.parts = append(s.parts, Part{Name: "mafa_positives", Node: s.total(x.Positives()), Measure: true},
			Part{Name: "mafa_replaced", Node: s.total(x.Replaced()), Measure: true})
	}
	return s.relabelled
}
