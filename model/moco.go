package model

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/op"
)

// MoCo is contrast of two views of an image with a momentum encoder and a queue of its
// features (He et al. 2020), with the MLP head of its second version (Chen et al. 2020)
// over a vision transformer. The first view passes the encoder, the second its momentum
// twin. The score is the cosine or the geodesic of Mei et al. through the graph over the
// queue (objective.itc.score).
//
// objective.itc.in_batch_weight adds contrast of both views through the encoder within
// the batch, which helps a model from random weights to start while the queue's features
// are those of an untrained twin.
type MoCo struct{ *Views }

// NewMoCo builds the model of a configuration whose model.system is moco, with freshly
// initialised parameters. The engine stays the caller's.
func NewMoCo(cfg config.Config, engine *kernel.Engine) (*MoCo, error) {
	if cfg.Model.System != "moco" {
		return nil, fmt.Errorf(`model: model.system must be "moco" (got %q)`, cfg.Model.System)
	}
	v, err := newViews(cfg, engine, hasTwin)
	if err != nil {
		return nil, err
	}
	m := &MoCo{v}
	return m, m.buildTrain()
}

// buildTrain builds and compiles the training step.
func (m *MoCo) buildTrain() (err error) {
	defer op.Catch(&err)
	s, tg, itc := m.newBuilder(), &m.Views.train, m.cfg.Objective.ITC
	query := s.features(s.on, tg.views[0])     // (B, C)
	tg.pushed = s.features(s.mom, tg.views[1]) // (B, C)
	score, pool := s.score(), s.newPool()
	positives := objectives.Positives{Labels: pool.own}
	loss, accuracy := objectives.ViewContrast{
		Query: query, Score: score, Positives: positives,
		Bank: &objectives.Bank{Keys: tg.pushed, Queue: pool.queue, Cols: pool.cols, Pointer: pool.pointer, Graph: pool.graph},
	}.Build()
	s.add("itc", itc.Weight, loss)
	tg.parts = append(tg.parts, namedNode{"itc_accuracy", accuracy, true})
	if itc.InBatchWeight > 0 {
		batch := s.ints("batch", tg.batch)
		s.fixed[batch] = iota32(0, tg.batch, 1)
		second := s.features(s.on, tg.views[1]) // (B, C)
		within := objectives.InBatchContrast(query, second, scorer{cfg: s.v.cfg, on: s.on}.score(s.v.cfg.PairTerms(), false), objectives.Positives{Labels: batch})
		s.add("itc_in_batch", itc.InBatchWeight, within.Loss)
	}
	return s.compile()
}

// Forward runs one training step up to the gradients, which are in Params.Grads. It
// changes no state; see Enqueue. The result is reused by the next step.
func (m *MoCo) Forward(b Batch, c Control) (*Result, error) { return m.forward(b, c) }
