package model

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// SwAV is swapped prediction between two views of an image (Caron et al. 2020), without
// multi-crop, over a vision transformer: both views pass one encoder, and each predicts
// the other's code over learned prototypes. The queue holds features of first views; both
// views' codes are balanced together with it, where SwAV keeps a queue for each view. The
// score is the cosine or the geodesic of Mei et al. through the graph over the queue
// (objective.itc.score), see objectives.SwappedPrediction.
type SwAV struct {
	*Views
	frozen bool // whether the step leaves the prototypes as they are
}

// prototypesName is the parameter of the prototypes.
const prototypesName = "prototypes"

// NewSwAV builds the model of a configuration whose model.system is swav, with freshly
// initialised parameters. The engine stays the caller's.
func NewSwAV(cfg config.Config, engine *kernel.Engine) (*SwAV, error) {
	if cfg.Model.System != "swav" {
		return nil, fmt.Errorf(`model: model.system must be "swav" (got %q)`, cfg.Model.System)
	}
	v, err := newViews(cfg, engine, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	m := &SwAV{Views: v}
	if err := m.buildTrain(); err != nil {
		return nil, err
	}
	m.normalizePrototypes()
	return m, nil
}

// buildTrain builds and compiles the training step.
func (m *SwAV) buildTrain() (err error) {
	defer op.Catch(&err)
	s, tg, c := m.newBuilder(), &m.Views.train, m.cfg.Objective.SwAV
	first, second := s.features(s.on, tg.views[0]), s.features(s.on, tg.views[1]) // (B, C)
	tg.pushed = first
	score, pool := s.score(), s.newPool()
	constant := func(n *gorgonia.Node, values any) *gorgonia.Node {
		s.fixed[n] = values
		return n
	}
	p := objectives.SwappedPrediction{
		Views:      [2]*gorgonia.Node{first, second},
		Prototypes: s.on.Param(prototypesName, encoders.LinearDefault(m.head.Out), c.Prototypes, m.head.Out),
		Queue:      pool.queue, Rows: pool.rows, Score: score,
		Epsilon: float32(c.Epsilon), Iterations: c.Iterations,
		Constants: objectives.SwappedConstants{
			One: constant(s.floats("one"), []float32{1}), Minus: constant(s.floats("minus one"), []float32{-1}),
			First: constant(s.ints("first"), []int32{0}), Zeros: constant(s.ints("zeros", tg.batch), make([]int32, tg.batch)),
		},
	}
	if g := pool.graph; g != nil {
		p.Centres, p.Paths, p.Count = g.Centres, g.Paths, g.Count
	}
	s.add("swav", m.cfg.Objective.ITC.Weight, p.Build())
	return s.compile()
}

// Before brings the prototypes back to the unit sphere, where the last update left them
// at other lengths, and rebuilds the graph over the queue where it is due.
func (m *SwAV) Before(step int) error {
	m.frozen = step < m.cfg.Objective.SwAV.FreezeSteps
	m.normalizePrototypes()
	return m.Views.Before(step)
}

func (m *SwAV) normalizePrototypes() {
	q, _ := m.params.Get(prototypesName)
	x, dim := m.params.Value(q), q.Shape[1]
	for i := 0; i < len(x); i += dim {
		normalize(x[i:][:dim])
	}
}

// Forward runs one training step up to the gradients, as MoCo's does. In the first
// objective.swav.freeze_steps steps that of the prototypes is 0; weight decay then changes
// their length alone, which Before restores.
func (m *SwAV) Forward(b Batch, c Control) (*Result, error) {
	r, err := m.forward(b, c)
	if err == nil && m.frozen {
		q, _ := m.params.Get(prototypesName)
		clear(m.params.Grad(q))
	}
	return r, err
}
