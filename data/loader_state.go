package data

import (
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/state"
)

// loaderCounters are what a checkpoint holds of a loader.
type loaderCounters struct {
	Position uint64 `json:"position"`                // next sample of the stream
	Epoch    int    `json:"epoch_samples,omitempty"` // samples of an epoch; 0: saved by an earlier version
	// samples before the position that were read, for data.max_bad_share
	Read uint64 `json:"read,omitempty"`
	Bad  uint64 `json:"bad,omitempty"` // and that were bad

	// What identifies the samples, as Identify was told; empty: it was not, or by an earlier version.
	Samples string `json:"samples,omitempty"`
	Rule    int    `json:"samples_rule,omitempty"` // EntriesRule when it was made
}

var (
	_ state.Part     = (*Loader)(nil)
	_ state.Restorer = (*Loader)(nil)
)

// StateName implements state.Part.
func (l *Loader) StateName() string { return loaderName }

// loaderName names the part of a checkpoint.
const loaderName = "data"

// StateVersion implements state.Part.
func (l *Loader) StateVersion() int { return 1 }

// Counters implements state.Part: the position, the length of an epoch, and what was read and bad up to the position.
func (l *Loader) Counters() any {
	l.saved = loaderCounters{Position: l.pos, Epoch: l.stream.EpochSamples(), Read: l.passed.read, Bad: l.passed.bad}
	if l.samples != (identity.Sum{}) {
		l.saved.Samples, l.saved.Rule = l.samples.String(), EntriesRule
	}
	return &l.saved
}

// Identify tells what identifies the samples (Entries.Sum), which checkpoints hold.
func (l *Loader) Identify(samples identity.Sum) { l.samples = samples }

// LoaderIdentity returns what a checkpoint says of the samples of its loader, whose counters read sets; ok is false
// where it says nothing, or by another rule.
func LoaderIdentity(read func(part string, counters any) error) (samples identity.Sum, ok bool) {
	var c loaderCounters
	if err := read(loaderName, &c); err != nil {
		return samples, false
	}
	err := samples.UnmarshalText([]byte(c.Samples))
	return samples, err == nil && samples != identity.Sum{} && c.Rule == EntriesRule
}

// Tensors implements state.Part: none.
func (l *Loader) Tensors() []state.Tensor { return nil }

// Restored implements state.Restorer: the loader starts at the position, and goes on counting bad samples where the
// epoch is as long as it was. Of other data it counts anew.
func (l *Loader) Restored() error {
	l.resized = 0
	p := Place{position: l.saved.Position}
	if n := l.saved.Epoch; n != l.stream.EpochSamples() {
		l.resized = n
	} else if l.saved.Bad <= l.saved.Read {
		p.read, p.bad = l.saved.Read, l.saved.Bad
	}
	l.Rewind(p)
	l.Start(p.position)
	return nil
}

// Resized returns the samples that an epoch had when the loader was saved that it goes on from, where it has others
// now, and their number now; else 0: as many, or it is not known. Positions are then those of other samples.
func (l *Loader) Resized() (was, now int) { return l.resized, l.stream.EpochSamples() }
