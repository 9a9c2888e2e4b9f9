package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
)

// build returns a model on an engine of its own backend and threads.
func build(t testing.TB, cfg config.Config, backend string, threads int) *Trainer {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: backend, Threads: threads}))(t)
	t.Cleanup(e.Close)
	giveDevice(t, e)
	return modelOn(t, cfg, e)
}

// randomBatch returns a batch of cfg's size: random pixels, captions of 3 tokens and
// more that start with id 2, two of three with one token masked by id 4, ids that repeat
// every 3 rows, and random features.
func randomBatch(m *Trainer, seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 0))
	cfg, rows := m.cfg, m.MaskRows()
	b, l := cfg.Train.BatchSize, cfg.Data.Tokens
	size := cfg.Model.Image.Size
	x := Batch{
		Images: make([]float32, b*3*size*size), Tokens: make([]int32, b*l), Lengths: make([]int32, b), IDs: make([]int32, b),
		MaskPlaces: make([]int32, rows), MaskLabels: make([]int32, rows),
	}
	for i := range x.Images {
		x.Images[i] = float32(r.NormFloat64())
	}
	for i := range b {
		x.IDs[i] = int32(i % 3)
		x.Lengths[i] = int32(3 + r.IntN(l-2))
		for k := range int(x.Lengths[i]) {
			x.Tokens[i*l+k] = int32(5 + r.IntN(tinyVocab-5))
		}
		x.Tokens[i*l] = 2
	}
	x.Positives, x.PositiveLengths, x.Negatives, x.NegativeLengths = x.Tokens, x.Lengths, x.Tokens, x.Lengths
	for i := range x.MaskLabels {
		x.MaskLabels[i] = -100
	}
	if rows > 0 {
		x.Masked = append(x.Masked, x.Tokens...)
		for n, i := 0, 0; i < b && n < rows; i++ {
			if i%3 == 2 {
				continue
			}
			p := i*l + 1 + r.IntN(int(x.Lengths[i])-1)
			x.MaskPlaces[n], x.MaskLabels[n] = int32(p), x.Tokens[p]
			x.Masked[p] = 4
			n++
		}
	}
	h := cfg.Model.Heads
	x.ImageFeatures, x.TextFeatures = make([]float32, b*h.InImage), make([]float32, b*h.InText)
	for _, features := range [][]float32{x.ImageFeatures, x.TextFeatures} {
		for i := range features {
			features[i] = float32(r.NormFloat64())
		}
	}
	return x
}

// step runs a whole training step with plain gradient descent.
func step(t testing.TB, m *Trainer, b Batch, c Control) *Result {
	t.Helper()
	res := forward(t, m, b, c)
	grads := m.params.Grads()
	for i, v := range grads {
		m.params.Values()[i] -= 0.05 * v
	}
	m.UpdateMomentum(0.9)
	check.OK(t, m.After())
	return res
}

// sameBits compares two slices bit by bit.
func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// newTrainer returns a model for training.
func newTrainer(t testing.TB, cfg config.Config, o Options) *Trainer {
	t.Helper()
	return check.Get(New(cfg, o))(t)
}

// modelOn is newModel, which must not fail.
func modelOn(t testing.TB, cfg config.Config, e *kernel.Engine) *Trainer {
	t.Helper()
	return check.Get(newModel(cfg, e))(t)
}

// forward computes losses and gradients of a batch.
func forward(t testing.TB, m *Trainer, b Batch, c Control) *Result {
	t.Helper()
	return check.Get(m.Forward(b, c))(t)
}

// overfit returns the losses of 200 steps of plain gradient descent on a batch. The temperature is steep: larger steps
// throw it from end to end.
func overfit(t testing.TB, m *Trainer, b Batch, rate float32) (losses []float64) {
	t.Helper()
	for step := range 200 {
		losses = append(losses, forward(t, m, b, Control{Step: step}).Loss)
		for _, q := range m.params.List() {
			rate := rate
			if q.Len() == 1 {
				rate = 0.001
			}
			for i, g := range m.params.Grad(q) {
				m.params.Value(q)[i] -= rate * g
			}
		}
		m.ClampTemperature()
	}
	return losses
}

// partsOf are the values of a step by name.
func partsOf(r *Result) map[string]float64 {
	values := map[string]float64{}
	for _, p := range r.Parts {
		values[p.Name] = p.Value
	}
	return values
}

// stepOf computes losses and gradients of a micro-batch.
func stepOf(t testing.TB, m *Trainer, s *feed.Step) *Result {
	t.Helper()
	return check.Get(m.Step(t.Context(), s))(t)
}

// encodeImages and encodeTexts return what the encoders of m give for n rows.
func encodeImages(t testing.TB, m interface {
	EncodeImages(images []float32, n int) (states, features []float32, err error)
}, images []float32, n int) (states, features []float32) {
	t.Helper()
	states, features = check.Get2(m.EncodeImages(images, n))(t)
	return states, features
}

func encodeTexts(t testing.TB, m interface {
	EncodeTexts(tokens, lengths []int32, n int) (states, features []float32, err error)
}, tokens, lengths []int32, n int) (states, features []float32) {
	t.Helper()
	states, features = check.Get2(m.EncodeTexts(tokens, lengths, n))(t)
	return states, features
}

// engineOf returns an engine until the end of the test.
func engineOf(t testing.TB, o kernel.Options) *kernel.Engine {
	t.Helper()
	e := check.Get(kernel.New(o))(t)
	t.Cleanup(e.Close)
	return e
}
