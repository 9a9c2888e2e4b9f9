package model

import (
	"fmt"

	"github.com/geoalign/geoalign/state"
)

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
			list = append(list, state.Tensor{Name: ring.name, Shape: []int{q.size, len(ring.rows) / q.size}, Data: ring.rows})
		}
	}
	return append(list, state.Tensor{Name: "ids", Shape: []int{q.size}, Data: q.IDs})
}

// CheckCounters implements state.Checker.
func (q *Queue) CheckCounters() error {
	if s := q.saved; s.Pointer < 0 || s.Pointer >= q.size || s.Filled < 0 || s.Filled > q.size {
		return fmt.Errorf("model: queue: pointer %d and fill %d do not fit %d entries: choose another checkpoint", s.Pointer, s.Filled, q.size)
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
