package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/objectives"
)

// FitReference fits the alignment of objective.klot.reference to pairs, with the settings of
// [model.align]. It ends early with the error of ctx.
func FitReference(ctx context.Context, cfg config.Config, e *compute.Engine, pairs align.Pairs) (*objectives.Reference, error) {
	m, err := fitLinear(ctx, cfg, e, "objective.klot.reference", cfg.Objective.KLOT.Reference, pairs)
	if err != nil {
		return nil, err
	}
	layer := func(s align.Side) (l objectives.Layer) {
		l.Weight, l.Bias = m.Layer(s)
		return l
	}
	return &objectives.Reference{Image: layer(align.Image), Text: layer(align.Text)}, nil
}

// fitLinear fits the map of a name, which key asks for, of one linear layer a side.
func fitLinear(ctx context.Context, cfg config.Config, e *compute.Engine, key, name string, pairs align.Pairs) (*align.Linear, error) {
	method, zero := cfg.Model.Align.Named(name, cfg.Run.Seed)
	a := &Aligned{method: method, engine: e, fitted: zero}
	if _, err := a.Fit(ctx, pairs); err != nil {
		return nil, err
	}
	m, ok := a.fitted.(*align.Linear)
	if !ok || m.Parts() > 1 {
		return nil, fmt.Errorf("model: %s = %q is no map of one linear layer a side", key, name)
	}
	return m, nil
}
