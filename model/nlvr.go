package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

// newNLVR is the loss of statements about two pictures.
func newNLVR(cfg config.Config) objectives.NLVR {
	return objectives.NLVR{Weight: cfg.Objective.NLVR.Weight, Head: encoders.TaskHead{Classes: 2}, Size: cfg.Model.Image.Size}
}
