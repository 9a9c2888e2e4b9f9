package model

import (
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// newLosses is the list of the losses of a configuration, in the order in which they are built and added up, each a
// copy of its section. Those of the options come last.
func newLosses(cfg config.Config, o Options) []objectives.Loss {
	all := cfg.Losses()
	for _, l := range o.Losses {
		all = append(all, l)
	}
	return objectives.Group(all)
}

// newHost is what losses know of a model.
func newHost(cfg config.Config, o Options) objectives.Host {
	h := objectives.Host{Config: cfg.View(), Classes: len(o.Classes),
		Words: objectives.Words{Vocab: o.Vocab, MaskID: o.MaskID, Specials: o.Specials, End: o.EndID},
		Text:  textEncoder(cfg.Model, o, space.Space{Dim: cfg.Model.Head.Dim, Spheres: 1})}
	if o.End > 0 { // texts have that token
		h.Words.End = -1
	}
	return h
}
