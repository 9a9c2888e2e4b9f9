package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// albef is the system of Li et al. 2021: a vision transformer, a text encoder and a fusion
// encoder, trained by image-text contrast against a momentum teacher and a queue,
// image-text matching with hard negatives, and masked language modelling.
func albef(cfg config.Config, o Options, space space.Space) design {
	d := pairOfTowers(cfg, o, encoders.Projection{Space: space})
	if bert, ok := textEncoder(cfg.Model, o, space).(encoders.BERT); ok {
		bert.Pictures = cfg.Pictures()
		d.fusion = &bert
	}
	return d
}
