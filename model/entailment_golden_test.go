package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
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
	f := check.Get(safetensors.Open("testdata/entailment.safetensors"))(t)
	t.Cleanup(func() { f.Close() })
	g := golden{t, f}
	m := modelOn(t, entailmentConfig(), newEngine(t))
	has := func(name string) bool { _, ok := f.Lookup(name); return ok }
	read := 0
	for _, q := range m.params.List() {
		if !has("param/" + q.Name) {
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
	columns := check.Get(Columns(m.cfg))(t)
	b := batch.New(4, columns...)
	copy(b.Floats(batch.Images), g.floats("input/images"))
	copy(b.Ints(batch.Tokens), g.ints("input/tokens"))
	copy(b.Ints(batch.Lengths), g.ints("input/lengths"))
	copy(b.Ints(batch.Labels), g.ints("input/labels"))
	check.OK(t, m.step.inputs.Fill(m.step.machine, &feed.Step{Batch: b, Update: 10, PerEpoch: 10}))
	check.OK(t, m.step.machine.RunAll())
	loss, err := m.step.machine.Scalar(m.step.loss)
	if want := float64(g.floats("expect/entailment")[0]); err != nil || !(math.Abs(float64(loss)-want) <= 1e-5*want) {
		t.Errorf("loss %v, PyTorch %v (%v)", loss, want, err)
	}
	compared := 0
	for _, q := range m.params.List() {
		if !has("grad/" + q.Name) {
			continue
		}
		compared++
		if rel, err := relative(m.params.Grad(q), g.floats("grad/"+q.Name)); err != nil || !(rel <= 1e-4) {
			t.Errorf("gradient of %s differs by %.1e of its largest element (%v)", q.Name, rel, err)
		}
	}
	if compared < 60 || compared != read {
		t.Errorf("compared %d gradients of %d parameters", compared, read)
	}
	said := check.Get(m.Classifier().Logits(t.Context(), b))(t)
	if rel, err := relative(said, g.floats("expect/logits")); err != nil || rel > 1e-5 {
		t.Errorf("logits differ by %.1e (%v)", rel, err)
	}
}
