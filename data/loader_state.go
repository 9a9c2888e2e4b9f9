package data

import "github.com/geoalign/geoalign/state"

// loaderCounters are what a checkpoint holds of a loader.
type loaderCounters struct {
	Position uint64 `json:"position"` // next sample of the stream
}

var (
	_ state.Part     = (*Loader)(nil)
	_ state.Restorer = (*Loader)(nil)
)

// StateName implements state.Part.
func (l *Loader) StateName() string { return "data" }

// StateVersion implements state.Part.
func (l *Loader) StateVersion() int { return 1 }

// Counters implements state.Part: the position.
func (l *Loader) Counters() any {
	l.saved = loaderCounters{Position: l.pos}
	return &l.saved
}

// Tensors implements state.Part: none.
func (l *Loader) Tensors() []state.Tensor { return nil }

// Restored implements state.Restorer: the loader starts at the position.
func (l *Loader) Restored() error {
	l.Start(l.saved.Position)
	return nil
}
