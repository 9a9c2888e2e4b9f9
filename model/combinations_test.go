package model

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestEveryCombinationOfLosses builds each combination of the switches that the
// configuration allows, runs two steps and looks at the parts.
func TestEveryCombinationOfLosses(t *testing.T) {
	e := newEngine(t)
	count := 0
	for bits := range 1 << 8 {
		on := func(k int) bool { return bits>>k&1 == 1 }
		weight := func(k int) float64 {
			if on(k) {
				return 1
			}
			return 0
		}
		cfg := tinyConfig()
		cfg.Model.Image.Depth, cfg.Model.Text.Layers, cfg.Model.Text.FusionLayers = 1, 1, 1
		cfg.Objective.ITC.Weight, cfg.Objective.ITC.InBatchWeight = weight(0), weight(1)
		cfg.Objective.ITM.Weight, cfg.Objective.MLM.Weight = weight(2), weight(3)
		cfg.Momentum.Enabled = on(4)
		if !on(5) {
			cfg.Queue.Size = 0
		}
		cfg.Objective.Distill.Alpha = 0.4 * weight(6)
		if on(7) {
			cfg.Objective.ITC.Positives = "id"
		}
		if cfg.Validate() != nil {
			continue // such as a queue without a teacher
		}
		count++
		var want []string
		for k, name := range []string{"itc", "itc_in_batch", "itm"} {
			if on(k) {
				want = append(want, name)
			}
		}
		if on(2) {
			want = append(want, "itm_accuracy")
		}
		if on(3) {
			want = append(want, "mlm")
		}
		name := fmt.Sprintf("%v momentum=%t queue=%t distill=%t ids=%t", want, on(4), on(5), on(6), on(7))
		m, err := newModel(cfg, e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range 2 {
			res, err := m.Forward(randomBatch(m, uint64(i)), Control{Step: i, Alpha: cfg.Objective.Distill.Alpha, UseQueue: true})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !finite(res.Loss) || res.Loss <= 0 {
				t.Errorf("%s: loss %v", name, res.Loss)
			}
			var got []string
			var sum float64
			for _, p := range res.Parts {
				got = append(got, p.Name)
				if !p.Measure {
					sum += p.Value
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: parts %v", name, got)
			}
			if d := sum - res.Loss; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s: the parts sum to %v, the loss is %v", name, sum, res.Loss)
			}
			for _, v := range m.params.Grads() {
				if !finite(float64(v)) {
					t.Fatalf("%s: a gradient is %v", name, v)
				}
			}
			for _, q := range m.params.List() {
				if m.Learnable(q.Name) && !slices.ContainsFunc(m.params.Grad(q), func(v float32) bool { return v != 0 }) {
					t.Errorf("%s: the gradient of %s is all zero", name, q.Name)
				}
			}
			m.UpdateMomentum(0.9)
			check.OK(t, m.Enqueue(make([]int32, cfg.Train.BatchSize)))
		}
	}
	if count < 60 {
		t.Errorf("only %d combinations were allowed", count)
	}
	t.Logf("%d combinations", count)
}
