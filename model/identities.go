package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// identities is metric learning of images alone: one tower and a projection without bias onto the unit sphere. Its
// losses compare the images of a batch by their identities. Both sides are this tower, so that whatever asks
// for either side of a score has it; a step encodes the images once.
func identities(cfg config.Config, space space.Space) design {
	one := side{
		name: "image", proj: "image_proj", frozen: cfg.Model.Image.Freeze,
		tower: imageTower(cfg, space),
		head:  encoders.Projection{Space: space, NoBias: true, Gaussian: true},
	}
	return design{image: one, text: one, views: true}
}
