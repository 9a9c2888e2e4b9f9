package model

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/state"
)

// NoID marks a queue entry that has no image id: it is never a positive.
const NoID = -100

// Keys are features of a batch of B samples that enter a queue. A part that the queue does
// not keep is nil.
type Keys struct {
	Image, Text []float32 // (B, C) momentum features, as the head gives them
	// ImageBackbone and TextBackbone (B, D') are what the momentum head reads: the final
	// states of the class tokens.
	ImageBackbone, TextBackbone []float32
}

// Clear drops all rows and keeps the memory.
func (k *Keys) Clear() {
	k.Image, k.Text, k.ImageBackbone, k.TextBackbone = k.Image[:0], k.Text[:0], k.ImageBackbone[:0], k.TextBackbone[:0]
}

// Part returns the rows of part i of n equal ones.
func (k *Keys) Part(i, n int) Keys {
	cut := func(x []float32) []float32 { return x[i*len(x)/n : (i+1)*len(x)/n] }
	return Keys{cut(k.Image), cut(k.Text), cut(k.ImageBackbone), cut(k.TextBackbone)}
}

// Queue holds rings of momentum features, one per modality, with the ids of the images
// they came from. A batch of any size is written at the pointer and wraps around; the
// oldest entries are overwritten. A system of images alone has no ring of texts.
type Queue struct {
	Image, Text []float32 // (Q, C); Text is nil in a system of images alone
	// ImageBackbone and TextBackbone (Q, D') are the features before the head, nil unless
	// they are kept. Rows that are not filled are 0.
	ImageBackbone, TextBackbone []float32

	IDs       []int32 // (Q)
	Pointer   int     // next row to write
	Filled    int     // rows written so far, at most Q
	size, dim int
	graphs    *Graphs // over the rings, or nil
	saved     queueCounters
	device    *cuda.Device // that keeps the rings too, or nil
	held      deviceMemory // there
}

// queueArgs says what a queue holds.
type queueArgs struct {
	size    int // Q
	dim     int // C
	spheres int // equal groups of channels whose rows are unit vectors
	// image and text are the widths D' of the features before the head, 0: they are not kept.
	image, text int
	imagesOnly  bool   // there is no ring of texts
	seed        uint64 // of the rows to begin with
}

// newQueue returns a queue of random rows, none of them filled.
func newQueue(a queueArgs) *Queue {
	ring := func(width int) []float32 {
		if width == 0 {
			return nil
		}
		return make([]float32, a.size*width)
	}
	q := &Queue{Image: ring(a.dim), IDs: make([]int32, a.size), size: a.size, dim: a.dim, ImageBackbone: ring(a.image),
		TextBackbone: ring(a.text)}
	if !a.imagesOnly {
		q.Text = ring(a.dim)
	}
	r := rng.New(a.seed, rng.Queue, 0)
	for _, ring := range [][]float32{q.Image, q.Text} {
		for i := range ring {
			ring[i] = float32(r.NormFloat64())
		}
		for unit := a.dim / a.spheres; len(ring) > 0; ring = ring[unit:] {
			scoring.Normalize(ring[:unit])
		}
	}
	for i := range q.IDs {
		q.IDs[i] = NoID
	}
	return q
}

// keepOn has a device keep the rings; nil: none. What enters them goes there row by row, and products in bfloat16 round
// them.
func (q *Queue) keepOn(d *cuda.Device) error {
	if d == nil {
		return nil
	}
	q.device = d
	for _, r := range q.rings(Keys{}) {
		if err := q.held.keepOn(d, r.rows, false); err != nil {
			return err
		}
	}
	return nil
}

// both are the rings of images and of texts.
func (q *Queue) both() [2][]float32 { return [2][]float32{q.Image, q.Text} }

// Size returns Q.
func (q *Queue) Size() int { return q.size }

// ring is one of a queue's arrays with the rows that enter it.
type ring struct {
	name       string
	rows, keys []float32
}

func (q *Queue) rings(k Keys) [4]ring {
	return [...]ring{
		{"image", q.Image, k.Image}, {"text", q.Text, k.Text},
		{"image backbone", q.ImageBackbone, k.ImageBackbone}, {"text backbone", q.TextBackbone, k.TextBackbone},
	}
}

// Push writes the features of n samples with their ids.
func (q *Queue) Push(k Keys, ids []int32) error {
	n := len(ids)
	if n > q.size {
		return fmt.Errorf("model: queue of %d entries cannot take a batch of %d: make queue.size at least the batch size", q.size, n)
	}
	for _, r := range q.rings(k) {
		if want := len(r.rows) / q.size * n; len(r.keys) != want {
			return fmt.Errorf("model: queue: got %d values of %s features for %d samples: want %d", len(r.keys), r.name,
				n, want)
		}
	}
	for done := 0; done < n; {
		count := min(n-done, q.size-q.Pointer)
		for _, r := range q.rings(k) {
			width := len(r.rows) / q.size
			copy(r.rows[q.Pointer*width:], r.keys[done*width:(done+count)*width])
			q.device.Touch(r.rows, q.Pointer*width, (q.Pointer+count)*width)
		}
		copy(q.IDs[q.Pointer:], ids[done:done+count])
		if q.graphs != nil {
			q.graphs.pushed(q.Pointer, count)
		}
		done += count
		q.Pointer = (q.Pointer + count) % q.size
		q.Filled = min(q.size, q.Filled+count)
	}
	return nil
}

// newQueue makes the queue of the configuration and the graphs over it, if there is one.
func (p *Trainer) newQueue() error {
	cfg := p.cfg
	if cfg.Queue.Size == 0 {
		return nil
	}
	if err := (Footprint{Queue: estimate{p.Model}.queueBytes()}).fits(); err != nil {
		return err
	}
	a := queueArgs{size: cfg.Queue.Size, dim: cfg.Model.Head.Dim, spheres: p.design.space.Spheres,
		imagesOnly: p.design.views, seed: cfg.Run.Seed}
	a.image, a.text = estimate{p.Model}.backboneWidths()
	p.queue = newQueue(a)
	if err := p.queue.keepOn(onDevice(p.engine)); err != nil {
		return err
	}
	if !cfg.Has(section.Graph) {
		return nil
	}
	var err error
	if p.graphs, err = newGraphs(cfg, p.design.space, p.queue, p.engine); err != nil {
		return err
	}
	p.graphs.share(p.o.Group)
	p.queue.graphs = p.graphs
	return nil
}

// queueCounters are what a checkpoint holds of a queue besides its rings.
type queueCounters struct {
	Pointer int `json:"pointer"`
	Filled  int `json:"filled"`
}

var (
	_ state.Part     = (*Queue)(nil)
	_ state.Checker  = (*Queue)(nil)
	_ state.Restorer = (*Queue)(nil)
)

// StateName implements state.Part.
func (q *Queue) StateName() string { return "queue" }

// StateVersion implements state.Part.
func (q *Queue) StateVersion() int { return 1 }

// Counters implements state.Part.
func (q *Queue) Counters() any {
	q.saved = queueCounters{Pointer: q.Pointer, Filled: q.Filled}
	return &q.saved
}

// Tensors implements state.Part: the rings that the queue keeps and the ids.
func (q *Queue) Tensors() (list []state.Tensor) {
	for _, ring := range []struct {
		name string
		rows []float32
	}{{"image", q.Image}, {"text", q.Text}, {"image_backbone", q.ImageBackbone}, {"text_backbone", q.TextBackbone}} {
		if ring.rows != nil {
			list = append(list, state.Tensor{Name: ring.name, Shape: []int{q.size, len(ring.rows) / q.size},
				Data: ring.rows})
		}
	}
	return append(list, state.Tensor{Name: "ids", Shape: []int{q.size}, Data: q.IDs})
}

// CheckCounters implements state.Checker.
func (q *Queue) CheckCounters() error {
	if s := q.saved; s.Pointer < 0 || s.Pointer >= q.size || s.Filled < 0 || s.Filled > q.size {
		return fmt.Errorf("model: queue: pointer %d and fill %d do not fit %d entries: choose another checkpoint",
			s.Pointer, s.Filled, q.size)
	}
	return nil
}

// Restored implements state.Restorer.
func (q *Queue) Restored() error {
	q.Pointer, q.Filled = q.saved.Pointer, q.saved.Filled
	for _, r := range q.rings(Keys{}) {
		q.device.Touch(r.rows, 0, len(r.rows))
	}
	return nil
}
