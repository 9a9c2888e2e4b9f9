package data

import "github.com/geoalign/geoalign/state"

// loaderCounters are what a checkpoint holds of a loader.
type loaderCounters struct {
	Position uint64 `json:"position"`                // next sample of the stream
	Epoch    int    `json:"epoch_samples,omitempty"` // samples of an epoch; 0: saved by an earlier version
}

var (
	_ state.Part     = (*Loader)(nil)
	_ state.Restorer = (*Loader)(nil)
)

// StateName implements state.Part.
func (l *Loader) StateName() string { return "data" }

// StateVersion implements state.Part.
func (l *Loader) StateVersion() int { return 1 }

// Counters implements state.Part: the position, and the length of an epoch.
func (l *Loader) Counters() any {
	l.saved = loaderCounters{Position: l.pos, Epoch: l.stream.EpochSamples()}
	return &l.saved
}

// Tensors implements state.Part: none.
func (l *Loader) Tensors() []state.Tensor { return nil }

// Restored implements state.Restorer: the loader starts at the position.
func (l *Loader) Restored() error {
	l.Start(l.saved.Position)
	l.resized = 0
	if n := l.saved.Epoch; n != l.stream.EpochSamples() {
		l.resized = n
	}
	return nil
}

// Resized returns the samples that an epoch had when the loader was saved that it goes on from, where it has others
// now, and their number now; else 0: as many, or it is not known. Positions are then those of other samples.
func (l *Loader) Resized() (was, now int) { return l.resized, l.stream.EpochSamples() }
