package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// fake is a Stepper with a clock that moves a second per step.
type fake struct {
	steps  []int
	now    time.Time
	before func(call, step int) error // error of a step; call counts from 1
	whole  bool                       // what Undo returns
	undone int                        // calls of Undo
}

func (f *fake) Undo() bool { f.undone++; return f.whole }

func (f *fake) clock() time.Time { return f.now }

func (f *fake) Step(_ context.Context, step int) (StepResult, error) {
	f.now = f.now.Add(time.Second)
	f.steps = append(f.steps, step)
	if f.before != nil {
		if err := f.before(len(f.steps), step); err != nil {
			return StepResult{Loss: math.NaN()}, err
		}
	}
	return StepResult{Loss: 10 - float64(step), Parts: []Value{{Name: "itc", Value: 3}, {Name: "itm", Value: 4}}, GradNorm: 2, LR: 1e-3, Temperature: 0.07, Samples: 8, DataWait: time.Millisecond}, nil
}

// record collects what a run does.
type record struct{ events []string }

func (r *record) add(format string, args ...any) {
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *record) Log(step int, values map[string]float64) error {
	r.add("log %d", step)
	return nil
}
func (r *record) Close() error { return nil }
func (r *record) Rewind(step int) error {
	r.add("rewind %d", step)
	return nil
}

func (r *record) save(e *Event) error { r.add("save %d", e.Step); return nil }

func (r *record) eval(_ context.Context, step int) (map[string]float64, error) {
	r.add("eval %d", step)
	return map[string]float64{"eval/retrieval/rsum": 1}, nil
}

// hooks returns the usual hooks, given in the wrong order.
func (r *record) hooks(saveEvery, evalEvery, logEvery int) []Hook {
	return []Hook{
		Logs(logEvery, r), Evaluations(evalEvery, r.eval), Checkpoints(SaveConfig{EverySteps: saveEvery, Save: r.save}), Metrics(4),
	}
}

func (r *record) expect(t *testing.T, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(r.events, want) {
		t.Errorf("got  %q\nwant %q", r.events, want)
	}
}

func TestOrderAndDue(t *testing.T) {
	var r record
	f := &fake{}
	out, err := Run(context.Background(), Config{Total: 7, Now: f.clock}, f, r.hooks(3, 4, 2)...)
	if err != nil || out.Step != 7 || out.Elapsed != 7*time.Second {
		t.Fatalf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "log 2", "save 3", "eval 4", "log 4", "save 6", "log 6", "save 7", "eval 7", "log 7")
	if !reflect.DeepEqual(f.steps, []int{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("steps %v", f.steps)
	}
}

func TestResume(t *testing.T) {
	var r record
	f := &fake{}
	out, err := Run(context.Background(), Config{Start: 5, Total: 7, Now: f.clock, Elapsed: time.Minute}, f, r.hooks(3, 0, 100)...)
	if err != nil || out.Step != 7 || out.Elapsed != 62*time.Second {
		t.Fatalf("got %+v, %v", out, err)
	}
	r.expect(t, "save 6", "save 7", "log 7")
	if out, err := Run(context.Background(), Config{Start: 7, Total: 7, Now: f.clock}, f); err != nil || out.Step != 7 || len(f.steps) != 2 {
		t.Errorf("a finished run: %+v, %v, steps %v", out, err, f.steps)
	}
}

func TestValues(t *testing.T) {
	f := &fake{now: time.Unix(1700000000, 0)}
	var got map[string]float64
	hooks := []Hook{Metrics(0.75), {Name: "look", Stage: StageLog, After: func(_ context.Context, e *Event) error {
		got = map[string]float64{}
		for k, v := range e.Values {
			got[k] = v
		}
		return nil
	}}}
	check.Get(Run(context.Background(), Config{Total: 2, Now: f.clock}, f, hooks...))(t)
	want := map[string]float64{"epoch": 2 / 0.75, "time": 1700000002, "loss": 9, "loss/itc": 3, "loss/itm": 4, "lr": 1e-3,
		"temperature": 0.07, "grad_norm": 2, "samples_per_second": 8, "data_wait": 0.001}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestInterruptedDuringStep(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var r record
	f := &fake{before: func(_, step int) error {
		if step == 3 {
			cancel()
		}
		return nil
	}}
	out, err := Run(ctx, Config{Total: 100, Now: f.clock}, f, r.hooks(100, 4, 100)...)
	if !errors.Is(err, ErrInterrupted) || out.Step != 4 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "save 4", "log 4") // no evaluation at 4
}

func TestInterruptedDuringEvaluation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var r record
	f := &fake{}
	hooks := append(r.hooks(100, 0, 100), Evaluations(2, func(ctx context.Context, step int) (map[string]float64, error) {
		cancel()
		return nil, fmt.Errorf("read image: %w", ctx.Err())
	}))
	out, err := Run(ctx, Config{Total: 100, Now: f.clock}, f, hooks...)
	if !errors.Is(err, ErrInterrupted) || out.Step != 2 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "save 2", "log 2")
}

// A save that was done already is not repeated for the interruption.
func TestInterruptedBetweenSteps(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var r record
	f := &fake{}
	hooks := append(r.hooks(2, 0, 1), Hook{Name: "stop", Stage: StageLog, After: func(_ context.Context, e *Event) error {
		if e.Step == 2 {
			cancel()
		}
		return nil
	}})
	if _, err := Run(ctx, Config{Total: 100, Now: f.clock}, f, hooks...); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v", err)
	}
	r.expect(t, "log 1", "save 2", "log 2")
	r.events = nil
	if _, err := Run(ctx, Config{Start: 2, Total: 100, Now: f.clock}, f, hooks...); err != ErrInterrupted {
		t.Errorf("cancelled before the start: %v", err)
	}
	if _, err := Run(ctx, Config{Total: 100, Now: f.clock}, f, hooks...); !errors.Is(err, ErrInterrupted) || !errors.Is(err, ErrNotBegun) {
		t.Errorf("cancelled before the first step: %v", err)
	}
	r.expect(t)
}

func TestFailedSaveIsReported(t *testing.T) {
	full := errors.New("disk full")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f := &fake{before: func(int, int) error { cancel(); return nil }}
	hook := Checkpoints(SaveConfig{Save: func(*Event) error { return full }})
	if _, err := Run(ctx, Config{Total: 5, Now: f.clock}, f, hook); !errors.Is(err, full) || errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "checkpoint after step 1") {
		t.Errorf("got %v", err)
	}
}

func TestSaveByMinutesAndLimit(t *testing.T) {
	var r record
	f := &fake{}
	hooks := []Hook{Checkpoints(SaveConfig{EveryMinutes: 0.05, Save: r.save})} // 3 seconds, and a step takes one
	out, err := Run(context.Background(), Config{Limit: 100 * time.Second, Elapsed: 92 * time.Second, Start: 50, Now: f.clock}, f, hooks...)
	if err != nil || out.Step != 58 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "save 53", "save 56", "save 58")
}

// notFinite returns the error of a step that was not finite.
func notFinite(step int) error { return &NonFiniteError{Step: step, What: "loss/itc is NaN"} }

func TestNonFiniteStops(t *testing.T) {
	var r record
	f := &fake{before: func(_, step int) error {
		if step == 2 {
			return notFinite(step)
		}
		return nil
	}}
	out, err := Run(context.Background(), Config{Total: 5, Now: f.clock}, f, r.hooks(1, 0, 1)...)
	var bad *NonFiniteError
	if !errors.As(err, &bad) || bad.Step != 2 || out.Step != 2 || !strings.Contains(err.Error(), "train.on_nan") {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "save 1", "log 1", "save 2", "log 2") // nothing of step 3
}

func TestNonFiniteSkips(t *testing.T) {
	var r record
	f := &fake{before: func(_, step int) error {
		if step == 2 || step >= 10 {
			return fmt.Errorf("micro-batch 1: %w", notFinite(step))
		}
		return nil
	}}
	c := Config{Total: 5, OnNaN: "skip", MaxSkips: 3, Now: f.clock}
	out, err := Run(context.Background(), c, f, r.hooks(0, 0, 100)...)
	if err != nil || out.Step != 5 || out.Skipped != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "log 3", "save 5", "log 5")

	c.Start, c.Total = 9, 50
	if out, err := Run(context.Background(), c, f); err == nil || out.Step != 13 || !strings.Contains(err.Error(), "4 steps in a row") {
		t.Errorf("only bad steps: got %+v, %v", out, err)
	}
}

func TestNonFiniteRollsBack(t *testing.T) {
	var r record
	f := &fake{before: func(call, step int) error {
		if call == 4 { // the first time at step 3
			return notFinite(step)
		}
		return nil
	}}
	c := Config{Total: 5, OnNaN: "rollback", Now: f.clock, Rollback: func(_ context.Context, bad, attempt int) (int, error) {
		r.add("rollback %d, attempt %d", bad, attempt)
		return 2, nil
	}}
	out, err := Run(context.Background(), c, f, r.hooks(2, 0, 1)...)
	if err != nil || out.Step != 5 || out.Rollbacks != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "save 2", "log 2", "log 3", "rollback 3, attempt 1", "rewind 2", "log 3", "save 4", "log 4", "save 5", "log 5")

	f.before = func(_, step int) error { return notFinite(step) }
	c.Start, c.MaxRollbacks = 2, 2
	if out, err := Run(context.Background(), c, f); err == nil || out.Rollbacks != 2 || !strings.Contains(err.Error(), "after 2 rollbacks") {
		t.Errorf("only bad steps: got %+v, %v", out, err)
	}
	none := errors.New("no checkpoint")
	c.Rollback = func(context.Context, int, int) (int, error) { return 0, none }
	if _, err := Run(context.Background(), c, f); !errors.Is(err, none) {
		t.Errorf("a rollback that failed: %v", err)
	}
	c.Start, c.Rollback = 0, func(context.Context, int, int) (int, error) { return 0, &NoRollbackError{none} }
	f = &fake{whole: true, before: func(_, step int) error {
		if step == 3 {
			return notFinite(step)
		}
		return nil
	}}
	r = record{}
	var bad *NonFiniteError
	if out, err := Run(context.Background(), c, f, r.hooks(0, 0, 1)...); !errors.Is(err, none) || !errors.As(err, &bad) || out.Step != 3 || out.Rollbacks != 0 || f.undone != 1 {
		t.Errorf("nothing to go back to: %+v, %v", out, err)
	}
	r.expect(t, "log 1", "log 2", "log 3", "save 3") // what was made before
}

// A Stepper that lets a NaN through must not get it saved.
func TestNonFiniteLossIsNotSaved(t *testing.T) {
	var r record
	_, err := Run(context.Background(), Config{Total: 5}, stepFunc(func() (StepResult, error) { return StepResult{Loss: math.NaN()}, nil }), r.hooks(1, 0, 1)...)
	check.Error(t, err, "nothing is saved")
	r.expect(t)
}

type stepFunc func() (StepResult, error)

func (s stepFunc) Step(context.Context, int) (StepResult, error) { return s() }
func (s stepFunc) Undo() bool                                    { return true }

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	f := &fake{before: func(int, int) error { return broken }}
	if _, err := Run(context.Background(), Config{Total: 5}, f); !errors.Is(err, broken) || !strings.Contains(err.Error(), "step 0") {
		t.Errorf("failed step: %v", err)
	}
	ended := false
	end := Hook{Name: "x", End: func() error { ended = true; return broken }}
	if _, err := Run(context.Background(), Config{Total: 0, Limit: 1}, &fake{now: time.Unix(0, 0)}, end); !errors.Is(err, broken) || !ended {
		t.Errorf("failed end: %v", err)
	}
	for want, c := range map[string]Config{
		"no end":               {},
		"at step 9 of a run":   {Start: 9, Total: 5},
		"train.on_nan":         {Total: 5, OnNaN: "ignore"},
		"needs checkpoints":    {Total: 5, OnNaN: "rollback"},
		"raise train.max_step": {Start: 9, Total: 5},
	} {
		check.Fails(Run(context.Background(), c, f))(t, want)
	}
}

// TestSamplesPerSecond are those of the newest steps alone, by the time of the steps together.
func TestSamplesPerSecond(t *testing.T) {
	h := Metrics(0)
	want := map[int]float64{1: 0.1, 5: 0.1, 6: 60. / 501, rateWindow + 4: 200. / (100 + rateWindow - 1), rateWindow + 5: 10}
	for n := 1; n <= rateWindow+5; n++ {
		e := &Event{Step: n, Values: map[string]float64{}, Result: StepResult{Samples: 10}, StepTime: time.Second}
		if n <= 5 {
			e.StepTime = 100 * time.Second
		}
		check.OK(t, h.After(t.Context(), e))
		if got := e.Values["samples_per_second"]; want[n] != 0 && math.Abs(got-want[n]) > 1e-12 {
			t.Errorf("step %d: %v samples/s, want %v", n, got, want[n])
		}
	}
}

// TestValuesOfASkippedStep: an update that was left out has no numbers of its own, and none of the step before.
func TestValuesOfASkippedStep(t *testing.T) {
	f := &fake{before: func(_, step int) error {
		if step == 1 {
			return notFinite(step)
		}
		return nil
	}}
	rows := logged{}
	var r record
	hooks := []Hook{Metrics(4), Logs(1, rows), Evaluations(1, func(ctx context.Context, step int) (map[string]float64, error) {
		if step > 1 {
			return nil, nil
		}
		return r.eval(ctx, step)
	})}
	check.Get(Run(t.Context(), Config{Total: 3, OnNaN: "skip", Now: f.clock}, f, hooks...))(t)
	if got, want := slices.Sorted(maps.Keys(rows[2])), []string{"epoch", "skipped", "time"}; !slices.Equal(got, want) || rows[2]["skipped"] != 1 {
		t.Errorf("step 2 has %v, want %v", rows[2], want)
	}
	if _, evaluated := rows[3]["eval/retrieval/rsum"]; evaluated || rows[3]["loss"] != 8 || rows[3]["skipped"] != 0 {
		t.Errorf("step 3 has %v", rows[3])
	}
}

// logged keeps the rows of a log by their step.
type logged map[int]map[string]float64

func (l logged) Log(step int, values map[string]float64) error {
	l[step] = maps.Clone(values)
	return nil
}
func (logged) Close() error { return nil }

// TestSkipsInARow: a step that is made between them, and a run with few of them, goes on.
func TestSkipsInARow(t *testing.T) {
	f := &fake{before: func(_, step int) error {
		if step%4 != 3 {
			return notFinite(step)
		}
		return nil
	}}
	if out, err := Run(t.Context(), Config{Total: 20, OnNaN: "skip", MaxSkips: 3, Now: f.clock}, f); err != nil || out.Step != 20 || out.Skipped != 15 {
		t.Errorf("three in a row: %+v, %v", out, err)
	}
	f.before = func(_, step int) error { return notFinite(step) }
	if out, err := Run(t.Context(), Config{Total: 50, OnNaN: "skip", Now: f.clock}, f); err == nil || out.Skipped != 10 || !strings.Contains(err.Error(), "11 steps in a row") {
		t.Errorf("without a number of its own: %+v, %v", out, err)
	}
	c := Config{Total: 50, OnNaN: "rollback", Now: f.clock, Rollback: func(context.Context, int, int) (int, error) { return 0, nil }}
	if out, err := Run(t.Context(), c, f); err == nil || out.Rollbacks != 3 {
		t.Errorf("rollbacks without a number of its own: %+v, %v", out, err)
	}
}

// TestSavedAgain: a run that went back further than to its newest checkpoint, as where that is damaged, saves a step that it comes to again.
func TestSavedAgain(t *testing.T) {
	var r record
	h := Checkpoints(SaveConfig{EverySteps: 2, Save: r.save})
	for _, step := range []int{2, 3, 4} {
		check.OK(t, h.After(t.Context(), &Event{Step: step}))
	}
	check.OK(t, h.Rewind(2))
	check.OK(t, h.After(t.Context(), &Event{Step: 4}))
	r.expect(t, "save 2", "save 4", "save 4")
}
