package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
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
	e := engineOf(t, kernel.Options{Threads: 2})
	giveDevice(t, e)
	return e
}

// golden is a file that an independent implementation wrote.
type golden struct {
	t testing.TB
	f *safetensors.File
}

// openGolden opens testdata/NAME.safetensors until the end of the test.
func openGolden(t testing.TB, name string) golden {
	t.Helper()
	f := check.Get(safetensors.Open("testdata/" + name + ".safetensors"))(t)
	t.Cleanup(func() { f.Close() })
	return golden{t, f}
}

func (g golden) has(name string) bool {
	_, ok := g.f.Lookup(name)
	return ok
}

func (g golden) floats(name string) []float32 {
	g.t.Helper()
	return check.Get(g.f.Float32(name))(g.t)
}

func (g golden) ints(name string) []int32 {
	g.t.Helper()
	v := check.Get(g.f.Int64(name))(g.t)
	out := make([]int32, len(v))
	for i, x := range v {
		out[i] = int32(x)
	}
	return out
}

// set copies a tensor to values of its size.
func (g golden) set(dst []float32, name string) {
	g.t.Helper()
	v := g.floats(name)
	if len(v) != len(dst) {
		g.t.Fatalf("%s: the golden has %d values, the model %d", name, len(v), len(dst))
	}
	copy(dst, v)
}

// give sets the parameters of a model and their momentum copies, all of which the golden has.
func (g golden) give(m *Trainer) {
	g.t.Helper()
	for _, q := range m.params.List() {
		if q.Frozen && !g.has("param/"+q.Name) { // such as a temperature that is not learned
			continue
		}
		g.set(m.params.Value(q), "param/"+q.Name)
		if q.Momentum {
			g.set(m.params.MomentumValue(q), "momentum/"+q.Name)
		}
	}
}

// giveAll is give for a model that has all parameters of the golden.
func (g golden) giveAll(m *Trainer) {
	g.t.Helper()
	g.give(m)
	for _, x := range g.f.Tensors() {
		if name, ok := strings.CutPrefix(x.Name, "param/"); ok {
			if _, known := m.params.Get(name); !known {
				g.t.Errorf("the model has no parameter %s", name)
			}
		}
	}
}

// giveQueue sets the queue, of which some rows are filled.
func (g golden) giveQueue(m *Trainer, filled, pointer int) {
	g.t.Helper()
	g.set(m.queue.Image, "input/image_queue")
	g.set(m.queue.Text, "input/text_queue")
	if g.has("input/queue_ids") {
		copy(m.queue.IDs, g.ints("input/queue_ids"))
	}
	m.queue.Filled, m.queue.Pointer = filled, pointer
}

// batch returns the inputs of the golden.
func (g golden) batch(m *Trainer) Batch {
	b := Batch{IDs: iota32(0, m.cfg.Train.BatchSize, 1)}
	for name, to := range map[string]*[]float32{
		"images": &b.Images, "views": &b.Views, "second": &b.Second, "image": &b.ImageFeatures, "text": &b.TextFeatures,
	} {
		if g.has("input/" + name) {
			*to = g.floats("input/" + name)
		}
	}
	for name, to := range map[string]*[]int32{
		"tokens": &b.Tokens, "lengths": &b.Lengths, "ids": &b.IDs, "labels": &b.Labels, "masked": &b.Masked,
		"tokens2": &b.Positives, "lengths2": &b.PositiveLengths,
		"tokens3": &b.Negatives, "lengths3": &b.NegativeLengths,
		"image_near": &b.ImageNeighbours, "text_near": &b.TextNeighbours,
	} {
		if g.has("input/" + name) {
			*to = g.ints("input/" + name)
		}
	}
	if b.Masked == nil {
		return b
	}
	// The golden has 8 rows for its 5 masked tokens; the graph may have more.
	b.MaskPlaces, b.MaskLabels = make([]int32, m.MaskRows()), make([]int32, m.MaskRows())
	for i := range b.MaskLabels {
		b.MaskLabels[i] = -100
	}
	copy(b.MaskPlaces, g.ints("input/mask_places"))
	copy(b.MaskLabels, g.ints("input/mask_labels"))
	return b
}

// goldenInputs turns names of columns into those of goldens.
var goldenInputs = strings.NewReplacer("images/2", "views", "tokens/2", "tokens2", "lengths/2", "lengths2",
	"regions/lengths", "region_lengths")

// fill sets the columns of a batch that the golden has.
func (g golden) fill(b *batch.Batch) *batch.Batch {
	for _, c := range b.Columns() {
		name := "input/" + c.Name
		if !g.has(name) {
			name = "input/" + goldenInputs.Replace(c.Name)
		}
		switch {
		case !g.has(name):
		case c.Type == batch.Int32:
			b.SetInts(c.Name, g.ints(name))
		default:
			b.SetFloats(c.Name, g.floats(name))
		}
	}
	return b
}

// run runs the step over b with the noise of the golden.
func (g golden) run(m *Trainer, b Batch, alpha float64) {
	g.t.Helper()
	check.Get(m.load(b, Control{Alpha: alpha, UseQueue: true}))(g.t)
	copy(m.floats("noise i2t"), g.floats("input/noise_i2t"))
	copy(m.floats("noise t2i"), g.floats("input/noise_t2i"))
	check.OK(g.t, m.step.machine.RunAll())
}

// near compares values with a tensor: the largest difference is at most a share of the largest wanted value.
func (g golden) near(what string, got []float32, name string, tolerance float64) {
	g.t.Helper()
	near(g.t, what, got, g.floats(name), tolerance)
}

// near compares values to a share of the largest wanted one.
func near(t testing.TB, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if rel, err := relative(got, want); err != nil || !(rel <= tolerance) {
		t.Errorf("%s differs by %.1e of its largest element (%v)", what, rel, err)
	}
}

// value compares a loss or a figure beside it to 1e-5.
func (g golden) value(name string, got float64) {
	g.t.Helper()
	want := float64(g.floats("expect/" + name)[0])
	off := math.Abs(got - want)
	g.t.Logf("%s: relative difference %.1e", name, off/math.Abs(want))
	if !(off <= 1e-5*math.Abs(want)) {
		g.t.Errorf("%s: got %v, PyTorch %v (difference %.1e)", name, got, want, off)
	}
}

// gradients compares all gradients by name to 1e-4 of their largest element.
func (g golden) gradients(m *Trainer) {
	g.t.Helper()
	worst, most := "", 0.0
	for _, q := range m.params.List() {
		if q.Frozen {
			continue
		}
		rel, err := relative(m.params.Grad(q), g.floats("grad/"+q.Name))
		if err != nil {
			g.t.Fatalf("%s: %v", q.Name, err)
		}
		if rel > most {
			most, worst = rel, q.Name
		}
		if !(rel <= 1e-4) {
			g.t.Errorf("gradient of %s differs by %.1e of its largest element", q.Name, rel)
		}
	}
	g.t.Logf("largest difference of a gradient: %.1e (%s)", most, worst)
}

// result compares a step's loss, its parts and all gradients.
func (g golden) result(m *Trainer, r *Result) {
	g.t.Helper()
	g.value("loss", r.Loss)
	for name, v := range partsOf(r) {
		g.value(name, v)
	}
	g.gradients(m)
}

// step compares the loss, its parts and all gradients of the step that ran last.
func (g golden) step(m *Trainer) {
	g.t.Helper()
	for _, p := range append([]objectives.Part{{Name: "loss", Node: m.step.loss}}, m.step.parts...) {
		if p.Name != "itm_accuracy" {
			g.value(p.Name, float64(check.Get(m.step.machine.Scalar(p.Node))(g.t)))
		}
	}
	g.gradients(m)
}

// loadGolden returns a model with the golden's weights, momentum copies and queue, and its batch.
func loadGolden(t testing.TB, mode string) (*Trainer, Batch, golden) {
	cfg := tinyConfig()
	if cfg.Objective.ITC.Positives = mode; mode == "metric" {
		cfg.Objective.ITC.Positives = "pair"
		cfg.Model.AttentionMetric = encoders.AttentionMetric{Form: "dense", Heads: "own"}
	}
	g, m := openGolden(t, "albef_"+mode), modelOn(t, cfg, newEngine(t))
	g.give(m)
	g.giveQueue(m, 5, 5)
	return m, g.batch(m), g
}

// TestGoldenStep compares a whole training step with an independent PyTorch implementation, without and with a learned
// metric in all attention, in every loss part and every gradient by name.
func TestGoldenStep(t *testing.T) {
	for _, mode := range []string{"pair", "id", "metric"} {
		t.Run(mode, func(t *testing.T) {
			m, b, g := loadGolden(t, mode)
			g.run(m, b, 0.4)
			g.step(m)
		})
	}
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
