package train

import (
	"context"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/schedule"
)

// Fitter is a system without steps, which is fitted to all training pairs at once.
type Fitter interface {
	// Fit fits the system and returns measures of the fit. It ends early with the error of ctx.
	Fit(ctx context.Context, p align.Pairs) ([]model.Part, error)
	// State returns what a checkpoint holds of the system.
	State() []state.Part
}

var _ Fitter = (*model.Aligned)(nil)

// Fitting is the run of a Fitter, which has one step: the fit. It is to a Fitter what a
// Session is to a System.
type Fitting struct {
	cfg   config.Config
	model Fitter
	pairs align.Pairs
	run   runPart // of the newest checkpoint
	whole bool    // the fit ended early and has changed nothing
}

var _ Stepper = (*Fitting)(nil)

// NewFitting returns the run of a system over the training pairs of a configuration. Both stay
// the caller's.
func NewFitting(cfg config.Config, m Fitter, p align.Pairs) *Fitting {
	return &Fitting{cfg: cfg, model: m, pairs: p}
}

// Span returns the length of the run, one step that reads all pairs.
func (f *Fitting) Span() schedule.Span { return schedule.Span{Total: 1, PerEpoch: 1, Epoch: 1} }

// Step implements Stepper by the fit.
func (f *Fitting) Step(ctx context.Context, _ int) (StepResult, error) {
	f.whole = false
	parts, err := f.model.Fit(ctx, f.pairs)
	if err != nil {
		f.whole = true
		return StepResult{}, err
	}
	out := StepResult{Fit: true, Samples: f.pairs.Len()}
	for _, p := range parts {
		out.Parts = append(out.Parts, Value(p))
	}
	return out, nil
}

// Undo implements Stepper.
func (f *Fitting) Undo() bool { return f.whole }

// Close does nothing: the run holds nothing of its own.
func (f *Fitting) Close() error { return nil }

// State returns everything that a checkpoint of the run holds.
func (f *Fitting) State() []state.Part { return append([]state.Part{&f.run}, f.model.State()...) }

// Snapshot returns everything that the use of the fitted system needs. Its tensors are those of
// the system.
func (f *Fitting) Snapshot(e *Event) (checkpoint.Snapshot, error) {
	return snapshot(&f.run, e, f.cfg, nil, f.State)
}

// Restore sets the system to a checkpoint of the same method and seed.
func (f *Fitting) Restore(c *checkpoint.Checkpoint) (State, error) {
	return restore(&f.run, c, f.cfg.Run.Seed, f.State())
}

// Rollback is Restore: a fit has no place in the data.
func (f *Fitting) Rollback(c *checkpoint.Checkpoint) (State, error) { return f.Restore(c) }
