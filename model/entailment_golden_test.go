package model

import (
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks/multimodal"
)

// entailmentConfig is the model of tools/goldens/entailment.py.
func entailmentConfig() config.Config {
	c := tinyConfig()
	o := &c.Objective
	o.ITC.Weight, o.ITC.InBatchWeight, o.ITM.Weight, o.MLM.Weight = 0, 0, 0, 0
	c.Queue.Size = 0
	c.Data.Kind = multimodal.EntailmentName
	o.Entailment.Weight = 1
	o.Distill.Alpha, o.Distill.RampSteps, o.Distill.RampEpochs = 0.4, 0, 0
	return c
}

// TestGoldenEntailment compares the loss of visual entailment, all gradients by name and what the model says in
// evaluation with an independent PyTorch implementation.
func TestGoldenEntailment(t *testing.T) {
	g := openGolden(t, "entailment")
	m := modelOn(t, entailmentConfig(), newEngine(t))
	read := 0
	for _, q := range m.params.List() {
		if !g.has("param/" + q.Name) {
			if m.Learnable(q.Name) {
				t.Errorf("%s is trained here and not by PyTorch", q.Name)
			}
			continue
		}
		read++
		copy(m.params.Value(q), g.floats("param/"+q.Name))
		if !q.Momentum {
			t.Fatalf("%s has no twin", q.Name)
		}
		copy(m.params.MomentumValue(q), g.floats("momentum/"+q.Name))
	}
	b := g.fill(batch.New(4, check.Get(Columns(m.cfg))(t)...))
	check.OK(t, m.step.inputs.Fill(m.step.machine, &feed.Step{Batch: b, Update: 10, PerEpoch: 10}))
	check.OK(t, m.step.machine.RunAll())
	g.value("entailment", float64(check.Get(m.step.machine.Scalar(m.step.loss))(t)))
	compared := 0
	for _, q := range m.params.List() {
		if !g.has("grad/" + q.Name) {
			continue
		}
		compared++
		g.near("gradient of "+q.Name, m.params.Grad(q), "grad/"+q.Name, 1e-4)
	}
	if compared < 60 || compared != read {
		t.Errorf("compared %d gradients of %d parameters", compared, read)
	}
	g.near("logits", check.Get(m.Classifier().Logits(t.Context(), b))(t), "expect/logits", 1e-5)
}
