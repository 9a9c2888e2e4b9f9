package train

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Somebody sets the clock of the machine in the middle of a run: times of a run are differences
// of readings of the monotonic clock, which does not jump, and no step loses that part of its time.
func TestTimesAreOfTheMonotonicClock(t *testing.T) {
	var last *Event
	hook := Hook{Name: "look", Stage: StageLog, After: func(_ context.Context, e *Event) error {
		if !strings.Contains(e.Now.String(), " m=") {
			t.Errorf("step %d: %v has no monotonic reading", e.Step, e.Now)
		}
		if last != nil && e.Elapsed < last.Elapsed || e.StepTime < 0 {
			t.Errorf("step %d: elapsed %v, the step %v", e.Step, e.Elapsed, e.StepTime)
		}
		copied := *e
		last = &copied
		return nil
	}}
	out, err := Run(t.Context(), Config{Total: 5, Elapsed: time.Hour}, &fake{}, hook)
	if err != nil || out.Elapsed < time.Hour || out.Elapsed != last.Elapsed {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestLimitOnARollback: a run whose time is over when it goes back makes one more step, on all processes whatever their clocks say, so that
// it ends with a step that is saved, evaluated and logged as the last one. Without, it would end at the step that it went back to with none of that.
func TestLimitOnARollback(t *testing.T) {
	var r record
	f := &fake{before: func(call, step int) error {
		if call == 3 {
			return notFinite(step)
		}
		return nil
	}}
	asked := 0
	c := Config{Limit: 3 * time.Second, Now: f.clock, OnNaN: "rollback",
		Rollback: func(context.Context, int, int) (int, error) { return 1, nil },
		Clock:    func(own time.Duration) (time.Duration, error) { asked++; return own, nil }}
	out, err := Run(t.Context(), c, f, r.hooks(1, 100, 100)...)
	if err != nil || out.Step != 2 || out.Rollbacks != 1 || out.Elapsed != 4*time.Second {
		t.Errorf("%+v, %v", out, err)
	}
	r.expect(t, "save 1", "log 1", "save 2", "rewind 1", "save 2", "eval 2", "log 2")
	if asked != 3 {
		t.Errorf("the clock of all was read %d times, want once for each of 3 steps that were made", asked)
	}
}
