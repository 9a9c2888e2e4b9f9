package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var errBroken = errors.New("broken")

// A step that fails and leaves everything as it was ends the run with the steps before it
// saved and logged; one whose update had begun ends it as it is.
func TestFailedStepSavesWhatWasMade(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		whole bool
		want  []string
	}{
		{"reader", errBroken, true, []string{"log 1", "save 3", "log 3"}},
		{"not finite", &NonFiniteError{Step: 3, What: "loss/itc is NaN"}, true, []string{"log 1", "save 3", "log 3"}},
		{"in the update", errBroken, false, []string{"log 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r record
			f := &fake{whole: c.whole, before: func(_, step int) error {
				if step == 3 {
					return c.err
				}
				return nil
			}}
			out, err := Run(t.Context(), Config{Total: 9, Now: f.clock}, f, r.hooks(0, 0, 100)...)
			if !errors.Is(err, c.err) || errors.Is(err, ErrInterrupted) || out.Step != 3 || f.undone != 1 {
				t.Errorf("got %+v, %v, %d calls of Undo", out, err, f.undone)
			}
			if begun := strings.Contains(err.Error(), "nothing is saved"); begun == c.whole {
				t.Errorf("got %v", err)
			}
			r.expect(t, c.want...)
		})
	}
}

// An evaluation and a logger that fail end the run with its newest step saved.
func TestFailedHookSavesWhatWasMade(t *testing.T) {
	for stage, want := range map[Stage][]string{
		StageEval: {"save 2", "log 2"}, // the row without the evaluation, which a resumed run makes
		StageLog:  {"log 2", "save 2"},
	} {
		var r record
		f := &fake{}
		hooks := append(r.hooks(0, 0, 2), Hook{Name: "bad", Stage: stage, After: func(_ context.Context, e *Event) error {
			if e.Step == 2 {
				return errBroken
			}
			return nil
		}})
		out, err := Run(t.Context(), Config{Total: 9, Now: f.clock}, f, hooks...)
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "bad after step 2") || out.Step != 2 {
			t.Errorf("stage %d: got %+v, %v", stage, out, err)
		}
		r.expect(t, append([]string{"log 1"}, want...)...)
	}
}

// Where the save fails as well both errors are told; a save that failed is not repeated.
func TestFailedSaveOnTheWayOut(t *testing.T) {
	full, saves := errors.New("disk full"), 0
	save := Checkpoints(SaveConfig{EverySteps: 3, Save: func(e *Event) error {
		if saves++; e.Step == 3 != (e.Err == nil) {
			t.Errorf("step %d ends the run with %v", e.Step, e.Err)
		}
		return full
	}})
	f := &fake{whole: true, before: func(_, step int) error {
		if step == 1 {
			return errBroken
		}
		return nil
	}}
	if _, err := Run(t.Context(), Config{Total: 9, Now: f.clock}, f, save); !errors.Is(err, errBroken) || !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	f.before, saves = nil, 0
	if _, err := Run(t.Context(), Config{Total: 9, Now: f.clock}, f, save); !errors.Is(err, full) || saves != 1 {
		t.Errorf("got %v after %d saves", err, saves)
	}
}

// A step that ends with the error of the context was not made: the one before it is saved.
func TestInterruptedStepIsNotMade(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var r record
	f := &fake{whole: true, before: func(_, step int) error {
		if step == 3 {
			cancel()
			return fmt.Errorf("read: %w", ctx.Err())
		}
		return nil
	}}
	out, err := Run(ctx, Config{Total: 9, Now: f.clock}, f, r.hooks(0, 0, 100)...)
	if err != ErrInterrupted || out.Step != 3 || f.undone != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	r.expect(t, "log 1", "save 3", "log 3")
}

// After a rollback the newest step is that of the checkpoint, which needs no save.
func TestNothingToSaveAfterARollback(t *testing.T) {
	var r record
	f := &fake{whole: true, before: func(call, step int) error {
		switch call {
		case 3:
			return notFinite(step)
		case 4:
			return errBroken
		}
		return nil
	}}
	c := Config{Total: 9, OnNaN: "rollback", Now: f.clock, Rollback: func(context.Context, int, int) (int, error) { return 1, nil }}
	if _, err := Run(t.Context(), c, f, r.hooks(0, 0, 100)...); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	r.expect(t, "log 1", "rewind 1")
}
