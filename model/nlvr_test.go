package model

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// tinyPictures is the tiny model with two pictures of a text, and no loss.
func tinyPictures() config.Config {
	cfg := tinyConfig()
	cfg.Queue.Size = 0
	cfg.Objective.ITC.Weight, cfg.Objective.ITC.InBatchWeight, cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight = 0, 0, 0, 0
	return cfg
}

func tinyNLVR() config.Config {
	cfg := tinyPictures()
	cfg.Objective.NLVR.Weight = 1
	return cfg
}

func tinyAssignment() config.Config {
	cfg := tinyPictures()
	cfg.Objective.Assignment.Weight = 1
	cfg.Momentum.Enabled, cfg.Objective.Distill.Alpha = false, 0
	return cfg
}

// TestGoldenPictures compares steps of statements about two pictures and of text assignment with PyTorch: losses to
// 1e-5, every gradient by name to 1e-4 of its largest element, and the parameters by name.
func TestGoldenPictures(t *testing.T) {
	for name, cfg := range map[string]config.Config{"nlvr": tinyNLVR(), "assignment": tinyAssignment()} {
		t.Run(name, func(t *testing.T) {
			g, m := openGolden(t, name), build(t, cfg, "builtin", 2)
			g.giveAll(m)
			b := g.batch(m)
			check.Get(m.load(b, Control{Alpha: 0.4}))(t)
			if name == "assignment" {
				copy(m.floats("noise of other pictures"), g.floats("input/noise"))
				copy(m.ints("assignments"), g.ints("input/answers"))
			}
			check.OK(t, m.step.machine.RunAll())
			g.step(m)
			if name == "nlvr" {
				compareJudged(t, m, b, g.floats("output/logits"))
			}
		})
	}
}

// compareJudged compares what a model says of the rows of a batch, whose columns are those that Judge asks for, with
// logits.
func compareJudged(t *testing.T, m *Trainer, b Batch, logits []float32) {
	t.Helper()
	var names []string
	x := m.feed(b, Control{}).Batch
	for _, c := range m.Classifier().Columns() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if want := []string{batch.Images, batch.SecondImages, batch.Lengths, batch.Tokens}; !slices.Equal(names, want) {
		t.Errorf("columns %q, want %q", names, want)
	}
	got := check.Get(m.Classifier().Logits(t.Context(), x))(t)
	if rel, err := relative(got, logits); err != nil || rel > 1e-5 {
		t.Errorf("logits %v, PyTorch %v: %v", got, logits, err)
	}
}
