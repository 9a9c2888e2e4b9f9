package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// matchingSystem is a system of image-text matching, in the manner of VSE++ (Faghri et al. 2018) and
// SCAN (Lee et al. 2018): a tower for each side, compared by features or by tokens
// (model.interaction). A tower as wide as the space gives its rows directly; any other has a
// projection with a bias. It is trained by the losses over the scores of a batch, as a rule by
// objective.hinge.
func matchingSystem(cfg config.Config, o Options, space space.Space) design {
	d := pairOfTowers(cfg, o, encoders.Projection{Space: space})
	for _, x := range []struct {
		*side
		own encoders.Tower // in the place of the side's
	}{{&d.image, o.Image}, {&d.text, o.Text}} {
		tower := x.tower
		if x.own != nil {
			tower = x.own
		}
		head := x.head.(encoders.Projection)
		_, width := tower.Shape()
		head.Identity = width == space.Dim && !space.Tokens
		x.head = head
	}
	return d
}
