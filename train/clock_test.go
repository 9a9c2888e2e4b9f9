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

// TestRanksAgreeOnTheTimeOfARollback: the clock of all processes says whether the run is over after a step that is made anew too.
// The others would wait for one that goes by its own.
func TestRanksAgreeOnTheTimeOfARollback(t *testing.T) {
	f := &fake{before: func(call, step int) error {
		if call == 2 {
			return notFinite(step)
		}
		return nil
	}}
	c := Config{Limit: 2 * time.Second, Now: f.clock, OnNaN: "rollback",
		Rollback: func(context.Context, int, int) (int, error) { return 1, nil },
		Clock:    func(own time.Duration) (time.Duration, error) { return own - time.Second, nil }} // that of another process, which is behind
	out, err := Run(t.Context(), c, f)
	if err != nil || out.Step != 2 || out.Rollbacks != 1 || out.Elapsed != 2*time.Second {
		t.Errorf("%+v, %v", out, err)
	}
}
