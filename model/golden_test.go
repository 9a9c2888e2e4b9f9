package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/objectives"
)

// tinyConfig is the model of tools/goldens/albef.py.
func tinyConfig() config.Config {
	c := config.Default()
	c.Model.Image = encoders.ImageOptions{Size: 16, Patch: 8, Depth: 2, Width: 16, Heads: 2}
	c.Model.Text = encoders.TextOptions{Layers: 2, FusionLayers: 2, Width: 24, Heads: 2, Positions: 10}
	c.Model.Head.Dim = 8
	c.Queue.Size = 8
	c.Train.BatchSize = 4
	c.Data.Tokens = 6
	c.Objective.ITC.InBatchWeight = 0.5
	c.Objective.MLM.Prob = 0.15
	return c
}

const tinyVocab = 40

func newEngine(t testing.TB) *kernel.Engine {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Threads: 2}))(t)
	t.Cleanup(e.Close)
	giveDevice(t, e)
	return e
}

// golden reads testdata/albef_<mode>.safetensors.
type golden struct {
	t testing.TB
	f *safetensors.File
}

func (g golden) floats(name string) []float32 {
	v := check.Get(g.f.Float32(name))(g.t)
	return v
}

func (g golden) ints(name string) []int32 {
	v := check.Get(g.f.Int64(name))(g.t)
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x)
	}
	return out
}

// loadGolden returns a model with the golden's weights, twins and queue, and its batch.
func loadGolden(t testing.TB, mode string) (*Trainer, Batch, golden) {
	f := check.Get(safetensors.Open("testdata/albef_" + mode + ".safetensors"))(t)
	t.Cleanup(func() { f.Close() })
	g := golden{t, f}
	cfg := tinyConfig()
	if cfg.Objective.ITC.Positives = mode; mode == "metric" {
		cfg.Objective.ITC.Positives = "pair"
		cfg.Model.AttentionMetric = encoders.AttentionMetric{Form: "dense", Heads: "own"}
	}
	m := modelOn(t, cfg, newEngine(t))
	for _, q := range m.params.List() {
		copy(m.params.Value(q), g.floats("param/"+q.Name))
		if q.Momentum {
			copy(m.params.MomentumValue(q), g.floats("momentum/"+q.Name))
		}
	}
	copy(m.queue.Image, g.floats("input/image_queue"))
	copy(m.queue.Text, g.floats("input/text_queue"))
	copy(m.queue.IDs, g.ints("input/queue_ids"))
	m.queue.Filled, m.queue.Pointer = 5, 5
	b := Batch{
		Images: g.floats("input/images"), Tokens: g.ints("input/tokens"), Lengths: g.ints("input/lengths"), IDs: g.ints("input/ids"),
		Masked: g.ints("input/masked"),
	}
	// The golden has 8 rows for its 5 masked tokens; the graph may have more.
	b.MaskPlaces = make([]int32, m.MaskRows())
	b.MaskLabels = make([]int32, m.MaskRows())
	for i := range b.MaskLabels {
		b.MaskLabels[i] = -100
	}
	copy(b.MaskPlaces, g.ints("input/mask_places"))
	copy(b.MaskLabels, g.ints("input/mask_labels"))
	return m, b, g
}

// TestGoldenStep compares a whole training step with an independent PyTorch implementation, without and with a learned
// metric in all attention: every loss part to 1e-5, every gradient by name to 1e-4 of its largest element, and the
// teacher's features.
func TestGoldenStep(t *testing.T) {
	for _, mode := range []string{"pair", "id", "metric"} {
		t.Run(mode, func(t *testing.T) {
			m, b, g := loadGolden(t, mode)
			tg := m.step
			check.Get(m.load(b, Control{Alpha: 0.4, UseQueue: true}))(t)
			copy(m.floats("noise i2t"), g.floats("input/noise_i2t"))
			copy(m.floats("noise t2i"), g.floats("input/noise_t2i"))
			check.OK(t, tg.machine.RunAll())
			compareStep(t, m, g)
		})
	}
}

// compareStep compares the loss, its parts and all gradients of the step that ran last with
// those of a golden.
func compareStep(t *testing.T, m *Trainer, want golden) {
	t.Helper()
	for _, p := range append([]objectives.Part{{Name: "loss", Node: m.step.loss}}, m.step.parts...) {
		if p.Name == "itm_accuracy" {
			continue
		}
		got := check.Get(m.step.machine.Scalar(p.Node))(t)
		value := want.floats("expect/" + p.Name)[0]
		rel := math.Abs(float64(got-value)) / math.Abs(float64(value))
		t.Logf("%s: relative difference %.1e", p.Name, rel)
		if !(rel <= 1e-5) {
			t.Errorf("%s: got %v, PyTorch %v (relative difference %.1e)", p.Name, got, value, rel)
		}
	}
	worst, most := "", 0.0
	for _, q := range m.params.List() {
		rel, err := relative(m.params.Grad(q), want.floats("grad/"+q.Name))
		if err != nil {
			t.Fatalf("%s: %v", q.Name, err)
		}
		if rel > most {
			most, worst = rel, q.Name
		}
		if !(rel <= 1e-4) {
			t.Errorf("gradient of %s differs by %.1e of its largest element", q.Name, rel)
		}
	}
	t.Logf("largest difference of a gradient: %.1e (%s)", most, worst)
}

// relative returns the largest difference over the largest wanted value.
func relative(got, want []float32) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	var diff, largest float64
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			return d, nil
		}
		diff, largest = max(diff, d), max(largest, math.Abs(float64(want[i])))
	}
	if largest < 1e-7 { // a gradient that is zero in exact arithmetic, such as a key bias's
		return diff, nil
	}
	return diff / largest, nil
}
