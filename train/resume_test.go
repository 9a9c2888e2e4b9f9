package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/optim"
	"github.com/geoalign/geoalign/train/runlog"
)

// toy fits parameters to moving targets: a Stepper with all of the state that a
// real one has (parameters, moments, position in the data).
type toy struct {
	params, grads []float32
	opt           *optim.AdamW
	data          struct{ Position int }
}

func newToy(t *testing.T, e *kernel.Engine) *toy {
	t.Helper()
	y := &toy{params: make([]float32, 40), grads: make([]float32, 40)}
	for i := range y.params {
		y.params[i] = float32(math.Sin(float64(i)))
	}
	y.opt = check.Get(optim.New(e, y.params, y.grads, []optim.Segment{{Name: "w", Len: 40, Decay: true}},
		optim.Settings{Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, Decay: 0.1, ClipNorm: 1}))(t)
	return y
}

func (y *toy) Step(_ context.Context, step int) (StepResult, error) {
	loss := 0.0
	for i, p := range y.params {
		d := p - float32(math.Cos(float64(i*y.data.Position)))
		y.grads[i] = 2 * d
		loss += float64(d) * float64(d)
	}
	y.data.Position++
	norm := y.opt.GradNorm(1)
	y.opt.Step(0.01/float64(1+step), 1, norm)
	return StepResult{Loss: loss, GradNorm: norm, Samples: 1}, nil
}

func (y *toy) Undo() bool { return false }

// State lists what a checkpoint holds of the toy.
func (y *toy) State() []state.Part {
	return []state.Part{
		state.Values{Name: "model", Memory: []state.Tensor{{Name: "w", Shape: []int{40}, Data: y.params}}},
		y.opt,
		state.Values{Name: "data", Numbers: &y.data},
	}
}

func (y *toy) save(e *Event, s *checkpoint.Store) error {
	snap, err := checkpoint.Take(y.State())
	if err != nil {
		return err
	}
	return s.Save(e.Step, snap)
}

// restore returns the step of the newest checkpoint of run, -1 if there is none.
func (y *toy) restore(t *testing.T, run string) int {
	t.Helper()
	c, err := checkpoint.Load(run)
	if errors.Is(err, checkpoint.ErrNone) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	check.Get(c.Restore(y.State()))(t)
	return c.Step
}

// session runs one process' share of a run of 30 steps: it is interrupted in
// the step number stop, or dies without saving in the step number die.
func session(t *testing.T, run string, stop, die int) *toy {
	t.Helper()
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2}))(t)
	defer e.Close()
	store := check.Get(checkpoint.NewStore(filepath.Join(run, runlog.CheckpointsDir), checkpoint.Retention{Last: 1}))(t)
	y := newToy(t, e)
	start := y.restore(t, run)
	metrics := check.Get(runlog.OpenMetrics(filepath.Join(run, runlog.MetricsFile), start))(t)
	defer metrics.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	died := errors.New("died")
	c := Config{Start: max(start, 0), Total: 30}
	_, err := Run(ctx, c, stepped{y, func(step int) error {
		if step == stop {
			cancel()
		}
		if step == die {
			return died
		}
		return nil
	}}, Metrics(10), Logs(1, metrics), Checkpoints(SaveConfig{EverySteps: 4, Save: func(e *Event) error {
		if err := y.save(e, store); err != nil {
			return err
		}
		_, err := store.Prune()
		return err
	}}))
	if err != nil && !errors.Is(err, ErrInterrupted) && !errors.Is(err, died) {
		t.Fatal(err)
	}
	return y
}

// stepped calls before ahead of every step.
type stepped struct {
	Stepper
	before func(step int) error
}

func (s stepped) Step(ctx context.Context, step int) (StepResult, error) {
	if err := s.before(step); err != nil {
		return StepResult{}, err
	}
	return s.Stepper.Step(ctx, step)
}

// A run that is interrupted twice and dies once ends with the same parameters
// and the same metrics as one that is left alone.
func TestResumeEqualsUninterrupted(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	want := session(t, whole, -1, -1)
	session(t, parts, 5, -1)
	session(t, parts, -1, 15)
	session(t, parts, 22, -1)
	got := session(t, parts, -1, -1)
	if !reflect.DeepEqual(got.params, want.params) || got.data.Position != 30 {
		t.Errorf("got  %v\nwant %v", got.params[:4], want.params[:4])
	}
	rows := func(run string) []runlog.Row {
		r := check.Get(runlog.ReadMetrics(filepath.Join(run, runlog.MetricsFile)))(t)
		for _, row := range r { // what the clock says
			delete(row.Values, "time")
			delete(row.Values, "samples_per_second")
		}
		return r
	}
	a, b := rows(whole), rows(parts)
	if len(a) != 30 || !reflect.DeepEqual(a, b) {
		t.Errorf("%d and %d rows: %v, %v", len(a), len(b), a[:2], b[:2])
	}
}
