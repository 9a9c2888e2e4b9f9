package run

import (
	"context"
	"sync"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train"
)

// watched are rows that tell how many of them were read. A fit reads all of them several times.
type watched struct {
	rows align.Rows
	tell func(done, total int)

	mu   sync.Mutex
	read int
}

// watchEvery is the number of rows between two messages.
const watchEvery = 4096

func (w *watched) Rows() int  { return w.rows.Rows() }
func (w *watched) Width() int { return w.rows.Width() }

// Row implements align.Rows.
func (w *watched) Row(i int, dst []float32) error {
	w.mu.Lock()
	if w.read++; w.read%watchEvery == 0 {
		w.tell((w.read-1)%w.Rows()+1, w.Rows())
	}
	w.mu.Unlock()
	return w.rows.Row(i, dst)
}

// shownFit is a fit that shows how many rows it has read. It reads both sides alike.
type shownFit struct {
	*train.Fitting
	report console.Reporter
}

// newFit returns the fit of a system to pairs.
func newFit(cfg config.Config, m train.Fitter, p align.Pairs, report console.Reporter) shownFit {
	p.Image = &watched{rows: p.Image, tell: func(done, total int) {
		report.Phase("fitting: reading pairs", done,
			total)
	}}
	return shownFit{train.NewFitting(cfg, m, p), report}
}

// Step implements train.Stepper.
func (f shownFit) Step(ctx context.Context, step int) (train.StepResult, error) {
	defer f.report.PhasesDone()
	return f.Fitting.Step(ctx, step)
}
