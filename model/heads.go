package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// heads aligns the features of two frozen encoders: an identity tower and an MLP for each
// side. Trained by contrast within the batch it is the contrastive baseline of GeRA; layers,
// sizes and dropout are those of model.heads.
func heads(cfg config.Config, o Options, sp space.Space) design {
	c := cfg.Model.Heads
	mlp := c.Head(sp)
	return design{
		image:   side{name: "image", tower: encoders.FeatureTower{Column: batch.ImageFeatures, Dim: c.InImage, Center: c.Center, Mean: o.ImageCentre}, proj: "image_head", head: mlp},
		text:    side{name: "text", tower: encoders.FeatureTower{Column: batch.TextFeatures, Dim: c.InText, Center: c.Center, Mean: o.TextCentre}, proj: "text_head", head: mlp},
		teacher: cfg.Momentum.Enabled,
		keys:    teacherKeys(cfg),
	}
}

// FitHeads sets the widths of stored features that a configuration leaves open, 0, to those
// of the columns that its data has.
func FitHeads(cfg *config.Config, have []batch.Column) {
	for _, x := range []struct {
		width  *int
		column string
	}{{&cfg.Model.Heads.InImage, batch.ImageFeatures}, {&cfg.Model.Heads.InText, batch.TextFeatures}} {
		if c, ok := batch.Find(have, x.column); ok && *x.width == 0 {
			*x.width = c.Len()
		}
	}
}
