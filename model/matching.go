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
	d := pairOfTowers(cfg, o, space, encoders.Projection{Space: space})
	for _, x := range []*side{&d.image, &d.text} {
		head := x.head.(encoders.Projection)
		_, width := x.tower.Shape()
		head.Identity = head.Identity || width == space.SphereDim() && space.One()
		x.head = head
	}
	return d
}
