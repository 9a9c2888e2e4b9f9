package model

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
)

// Layout returns the parameters that training a configuration has, in the order of their names, without memory for
// any of them: their names, shapes and traits, and the values that each begins with (Params.Begin).
func Layout(cfg config.Config, o Options) (*Params, error) {
	if !cfg.Has(section.Graph) && cfg.Queue.Size > 0 { // whose size is no part of any shape
		cfg.Queue.Size = cfg.Train.BatchSize
	}
	params := NewParams(cfg.Run.Seed, cfg.Momentum.Enabled)
	params.start = o.Start
	p, err := newPairs(cfg, o, params)
	if err != nil {
		return nil, err
	}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if _, err := p.assemble(); err != nil {
		return nil, err
	}
	slices.SortFunc(params.list, func(a, b *Param) int { return strings.Compare(a.Name, b.Name) })
	return params, p.Close()
}
