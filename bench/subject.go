package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// subject is a system whose training step is measured.
type subject interface {
	train.Trainable
	Machine() *compute.Machine
	Footprint() model.Footprint
	Passes() (forward, backward time.Duration)
	ClampTemperature()
}

var (
	_ subject = (*model.ALBEF)(nil)
	_ subject = (*model.CLIP)(nil)
	_ subject = (*model.MoCo)(nil)
	_ subject = (*model.SwAV)(nil)
	_ subject = (*model.Heads)(nil)
)

// workload is a subject with random data.
type workload struct {
	subject
	forward func(step int) error // losses and gradients
	queue   func() error         // nil without a queue
	graphs  *model.Graphs        // over the queue, or nil
	before  func(step int) error // brings the graphs up to date
}

// readFrom gives the workload the full queue of a system and the graphs over it. Entries
// are random rows, which batches overwrite.
func (w *workload) readFrom(s train.System, enqueue func() error) {
	q := s.Queue()
	if q == nil {
		return
	}
	q.Filled = q.Size()
	r := rand.New(rand.NewPCG(7, 8))
	copy(q.ImageBackbone, noise(r, len(q.ImageBackbone)))
	copy(q.TextBackbone, noise(r, len(q.TextBackbone)))
	w.queue, w.graphs, w.before = enqueue, s.Graphs(), s.Before
}

// close ends what goes on beside the steps.
func (w *workload) close() error {
	if c, ok := w.subject.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// newWorkload builds the model of a configuration and a batch for it. The queue is full
// and distillation is at its full weight, as in the middle of a run.
func newWorkload(cfg config.Config, engine *compute.Engine) (*workload, error) {
	switch cfg.Model.System {
	case "albef":
		return newTowerWorkload(cfg, engine)
	case "clip":
		return newPairWorkload(cfg, engine)
	case "moco", "swav":
		return newViewsWorkload(cfg, engine)
	case "heads":
		return newHeadsWorkload(cfg, engine)
	}
	return nil, fmt.Errorf("bench: no random data for model.system %q", cfg.Model.System)
}

// newTowerWorkload is the step of the towers from pixels and words, fused or not.
func newTowerWorkload(cfg config.Config, engine *compute.Engine) (*workload, error) {
	m, err := model.NewALBEF(cfg, cfg.Data.VocabSize, engine)
	if err != nil {
		return nil, err
	}
	b := randomBatch(cfg, m.MaskRows())
	w := &workload{subject: m, forward: func(step int) error {
		_, err := m.Forward(b, model.Control{Step: step, Alpha: cfg.Objective.Distill.Alpha, UseQueue: true})
		return err
	}}
	w.readFrom(m, func() error { return m.Enqueue(b.IDs) })
	return w, nil
}

// newPairWorkload is the step of a dual encoder without a teacher.
func newPairWorkload(cfg config.Config, engine *compute.Engine) (*workload, error) {
	m, err := model.NewCLIP(cfg, cfg.Data.VocabSize, engine)
	if err != nil {
		return nil, err
	}
	b := randomBatch(cfg, 0)
	return &workload{subject: m, forward: func(step int) error {
		_, err := m.Forward(b, model.Control{Step: step})
		return err
	}}, nil
}

// newViewsWorkload is the step of a system of images alone.
func newViewsWorkload(cfg config.Config, engine *compute.Engine) (*workload, error) {
	system, err := train.NewSystem(cfg, cfg.Data.VocabSize, engine)
	if err != nil {
		return nil, err
	}
	m, ok := system.(interface {
		subject
		Enqueue(ids []int32) error
	})
	if !ok {
		return nil, fmt.Errorf("bench: model.system %q cannot be measured", cfg.Model.System)
	}
	b := randomBatch(cfg, 0)
	b.Views = noise(rand.New(rand.NewPCG(5, 6)), len(b.Images))
	w := &workload{subject: m, forward: func(step int) error {
		_, err := system.Forward(b, model.Control{Step: step, UseQueue: true})
		return err
	}}
	w.readFrom(system, func() error { return m.Enqueue(b.IDs) })
	return w, nil
}

func newHeadsWorkload(cfg config.Config, engine *compute.Engine) (*workload, error) {
	h, err := model.NewHeads(cfg, engine)
	if err != nil {
		return nil, err
	}
	f := randomFeatures(cfg)
	return &workload{subject: h, forward: func(step int) error {
		_, err := h.Forward(f, step)
		return err
	}}, nil
}

// noise returns n values of N(0, 1).
func noise(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// randomFeatures makes a batch of noise features.
func randomFeatures(cfg config.Config) model.Features {
	r, n, c := rand.New(rand.NewPCG(1, 2)), cfg.Train.BatchSize, cfg.Model.Heads
	return model.Features{Image: noise(r, n*c.InImage), Text: noise(r, n*c.InText), IDs: counting(n)}
}

// counting returns 0 ... n-1.
func counting(n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i)
	}
	return x
}

// randomBatch makes a batch of noise images and random full-length captions.
func randomBatch(cfg config.Config, maskRows int) model.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	n, l, s := cfg.Train.BatchSize, cfg.Data.Tokens, cfg.Model.Image.Size
	b := model.Batch{Images: noise(r, 3*n*s*s), Tokens: make([]int32, n*l), Lengths: make([]int32, n), IDs: counting(n)}
	for i := range b.Tokens {
		b.Tokens[i] = r.Int32N(int32(cfg.Data.VocabSize))
	}
	for i := range b.Lengths {
		b.Lengths[i] = int32(l)
	}
	if maskRows > 0 {
		b.Masked = append([]int32(nil), b.Tokens...)
		b.MaskPlaces, b.MaskLabels = make([]int32, maskRows), make([]int32, maskRows)
		for i := range maskRows {
			p := i * n * l / maskRows
			b.MaskPlaces[i], b.MaskLabels[i] = int32(p), b.Tokens[p]
		}
	}
	return b
}
