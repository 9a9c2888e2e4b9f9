package model

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
)

// Layout returns the parameters that training a configuration has, in the order of their names, without memory for
// any of them: their names, shapes and traits, and the values that each begins with (Params.Begin).
func Layout(cfg config.Config, o Options) (*Params, error) {
	if !cfg.Objective.UsesGraph() && cfg.Queue.Size > 0 { // whose size is no part of any shape
		cfg.Queue.Size = cfg.Train.BatchSize
	}
	params := NewParams(cfg.Run.Seed, cfg.Momentum.Enabled)
	params.start = o.Start
	m, err := modelOf(cfg, o, params)
	if err != nil {
		return nil, err
	}
	p := &Trainer{Model: m}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if _, err := p.assemble(); err != nil {
		return nil, err
	}
	slices.SortFunc(params.list, func(a, b *Param) int { return strings.Compare(a.Name, b.Name) })
	return params, p.Close()
}
