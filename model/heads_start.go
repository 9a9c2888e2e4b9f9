package model

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// StartHeads sets linear heads to the map of model.heads.start, fitted to pairs, and returns in
// words what they start from. Channels that the map has not are zero. Of CCA, whose channels
// are ordered by correlation, the first ones are taken where the heads have fewer; of the
// other maps none can be left out, which is config.Errors. The weights of a side are scaled to
// the size of fresh ones, which cosines do not see.
func StartHeads(ctx context.Context, p *Pairs, pairs align.Pairs) (string, error) {
	cfg := p.cfg
	name, c := cfg.Model.Heads.Start, cfg.Model.Head.Dim
	m, err := fitLinear(ctx, cfg, p.engine, "model.heads.start", name, pairs)
	if err != nil {
		return "", err
	}
	w := m.Width()
	if c < w && name != "cca" {
		return "", config.Errors{{Path: "model.head.dim", Value: c, Msg: fmt.Sprintf("must be at least %d for model.heads.start = %q, whose map has so many channels", w, name),
			Hint: `raise it: further channels start from zero; or start from "cca", whose first channels are its best`}}
	}
	for s, side := range []side{p.design.image, p.design.text} {
		weight, err := p.params.named(side.proj + "/fc1/weight")
		if err != nil {
			return "", err
		}
		bias, err := p.params.named(side.proj + "/fc1/bias")
		if err != nil {
			return "", err
		}
		startLayer(weight, bias, m, align.Side(s), min(c, w))
	}
	p.params.CopyToMomentum()
	took := fmt.Sprintf("%s of %d pairs", name, pairs.Len())
	switch {
	case c > w:
		took += fmt.Sprintf(": %d of %d channels, the others are zero", w, c)
	case c < w:
		took += fmt.Sprintf(": the first %d of its %d channels", c, w)
	}
	return took, nil
}

// startLayer sets a linear layer, weight (C, D) and bias (C), to the first n channels of a map.
func startLayer(weight, bias []float32, m *align.Linear, s align.Side, n int) {
	d := m.RowWidth(s)
	from, offset := m.Layer(s)
	clear(weight)
	clear(bias)
	copy(weight, from[:n*d])
	copy(bias, offset[:n])
	// Fresh weights are uniform within 1/sqrt(D).
	scale := float32(math.Sqrt(float64(n) / 3 / max(vector.SumSq(weight), 1e-30)))
	vector.Scale(weight, scale, weight)
	vector.Scale(bias, scale, bias)
}

// named returns the values of a parameter.
func (p *Params) named(name string) ([]float32, error) {
	q, ok := p.Get(name)
	if !ok {
		return nil, fmt.Errorf("model: there is no parameter %s: model.heads.start needs linear heads", name)
	}
	return p.Value(q), nil
}
