package optim

import (
	"fmt"

	"github.com/geoalign/geoalign/state"
)

// counters are what a checkpoint holds of the optimiser besides its moments.
type counters struct {
	Steps int `json:"steps"` // updates made, which the bias correction depends on
}

var (
	_ state.Preparer = (*AdamW)(nil)
	_ state.Part     = (*AdamW)(nil)
	_ state.Checker  = (*AdamW)(nil)
	_ state.Restorer = (*AdamW)(nil)
)

// PrepareSave implements state.Preparer: moments on a device come to the host.
func (o *AdamW) PrepareSave() error { return o.Fetch() }

// Restored implements state.Restorer: they go back.
func (o *AdamW) Restored() error { return o.Store() }

// StateName implements state.Part.
func (o *AdamW) StateName() string { return "optimizer" }

// StateVersion implements state.Part.
func (o *AdamW) StateVersion() int { return 1 }

// Counters implements state.Part.
func (o *AdamW) Counters() any { return &o.counters }

// CheckCounters implements state.Checker.
func (o *AdamW) CheckCounters() error {
	if o.counters.Steps < 0 {
		return fmt.Errorf("optim: %d updates: choose another checkpoint", o.counters.Steps)
	}
	return nil
}

// Tensors implements state.Part: the first moment m/<name> of every segment, frozen ones
// included, and then the second v/<name>.
func (o *AdamW) Tensors() []state.Tensor {
	list := make([]state.Tensor, 2*len(o.segments))
	for i, s := range o.segments {
		shape := s.Shape
		if shape == nil && s.Len != 1 {
			shape = []int{s.Len}
		}
		lo, hi := s.Offset, s.Offset+s.Len
		list[i] = state.Tensor{Name: "m/" + s.Name, Shape: shape, Data: o.m[lo:hi]}
		list[i+len(o.segments)] = state.Tensor{Name: "v/" + s.Name, Shape: shape, Data: o.v[lo:hi]}
	}
	return list
}
