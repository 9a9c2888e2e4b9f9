package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
)

// simcse is learning of sentence embeddings from texts alone (Gao et al. 2021): one text tower, whose losses compare the
// texts of a batch. Both sides are this tower, so that whatever asks for either side of a score has it; a step encodes the
// texts once. An embedding is what model.text.pool gives, on the unit sphere, or with objective.simcse.head = "always" what
// the head makes of it.
func simcse(cfg config.Config, o Options, space space.Space) design {
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: textTower(cfg, o, space)}
	if cfg.Objective.SimCSE.Head == config.SentenceHeadAlways {
		one.head = encoders.TanhHead(space)
	} else {
		one.head = encoders.Projection{Space: space, Identity: true}
	}
	return design{image: one, text: one, views: true}
}
