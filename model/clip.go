package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// clip is a dual encoder (Radford et al. 2021) with the towers and heads of clip-mtob (its
// section 3.1): a pre-norm vision transformer and a post-norm text encoder, each with a
// projection without bias onto the topology of model.head. The paper trains it by symmetric
// contrast within the batch alone; a teacher and a queue are a matter of configuration.
func clip(cfg config.Config, o Options, space space.Space) design {
	return pairOfTowers(cfg, o, encoders.Projection{Space: space, NoBias: true, Gaussian: true})
}
