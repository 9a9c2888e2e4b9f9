package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// classes is fine-tuning of an image tower for classification: the tower without a head of its own, whose features are its class tokens
// on the unit sphere. Both sides are this tower, so that whatever asks for either side of a score has it; a step encodes the images once.
func classes(cfg config.Config, space space.Space) design {
	one := side{name: "image", proj: "image_proj", frozen: cfg.Model.Image.Freeze, tower: imageTower(cfg, space), head: encoders.Projection{Space: space, Identity: true}}
	return design{image: one, text: one, views: true}
}

// newClasses is the loss over classes of images.
func newClasses(cfg config.Config, o Options) objectives.Classes {
	c, size := cfg.Objective.Classes, cfg.Model.Image.Size
	return objectives.Classes{
		Weight: c.Weight, Smoothing: c.Smoothing, Mix: objectives.Mix{Mixup: c.Mixup, Cutmix: c.Cutmix},
		Head:   encoders.ClassHead{Classes: len(o.Classes), Norm: c.Norm},
		Images: batch.Column{Name: batch.Images, Shape: []int{3, size, size}},
	}
}
