package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/cause"
)

// ErrInterrupted is returned by a run that was asked to stop and has saved.
var ErrInterrupted = errors.New("train: interrupted; continue with --resume auto")

// ErrNotBegun is the ErrInterrupted of a run without a step: there was nothing to save.
var ErrNotBegun = fmt.Errorf("%w: no step was made", ErrInterrupted)

// NoRollbackError says why Config.Rollback could not begin: the stepper is as it was, and what it made is saved.
type NoRollbackError struct{ Err error }

// Error gives the reason.
func (e *NoRollbackError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NoRollbackError) Unwrap() error { return e.Err }

// Config says how long Run goes on and what it does about numbers that are not finite.
type Config struct {
	Start int // updates done before, by the checkpoint that was resumed
	Total int // updates of the run; 0: until Limit
	// of Elapsed; 0: none. The step in progress is finished, and one that led to a rollback made anew
	Limit   time.Duration
	Elapsed time.Duration // time the run took before this session
	// Clock returns the time that the run took, of this process that which it is given, on all processes that train
	// together; nil: each has its own. It is called once for each step that was made or left out.
	Clock func(own time.Duration) (time.Duration, error)

	OnNaN        string // stop (also if empty), skip or rollback
	MaxSkips     int    // skipped steps in a row that stop the run; 0: 10
	MaxRollbacks int    // rollbacks in a session before it stops; 0: 3
	// Rollback restores the last checkpoint after the step that follows bad updates
	// was not finite, and returns its step. attempt counts from 1. The position in
	// the data must stay where it is, behind the bad batch: the same data would
	// give the same numbers again. Where there is nothing to restore it fails with a *NoRollbackError.
	Rollback func(ctx context.Context, bad, attempt int) (step int, err error)

	Now func() time.Time // nil: time.Now
}

// Outcome is what a session of a run did.
type Outcome struct {
	Step      int // updates done in all
	Elapsed   time.Duration
	Skipped   int
	Rollbacks int
}

// Run makes steps from c.Start until c.Total or c.Limit and calls the hooks after
// each. When ctx is cancelled the step in progress is given up, unless its update has
// begun, the hooks save and log the newest step, and Run returns ErrInterrupted. They also
// do so before Run returns any other error that leaves the stepper as it was.
//
// Of several processes (Ranks of the Stepper) all end after the same step where ctx of any of them is cancelled:
// the next call of Step tells them. A step in progress is made.
func Run(ctx context.Context, c Config, s Stepper, hooks ...Hook) (out Outcome, err error) {
	l, err := newLoop(c, s, hooks)
	if err != nil {
		return Outcome{Step: c.Start, Elapsed: c.Elapsed}, err
	}
	defer func() {
		for _, h := range l.hooks {
			if h.End == nil {
				continue
			}
			if e := h.End(); e != nil {
				err = errors.Join(err, fmt.Errorf("train: end of hook %s: %w", h.Name, e))
			}
		}
		out = l.out
	}()
	for !l.done() {
		if l.stopped(ctx) {
			err = l.end(ctx, ErrInterrupted, nil)
		} else {
			err = l.step(ctx)
		}
		if err == ErrInterrupted && l.out.Step == 0 {
			err = ErrNotBegun
		}
		if err != nil {
			return l.out, err
		}
	}
	return l.out, nil
}

// loop is the state of Run.
type loop struct {
	Config
	stepper     Stepper
	hooks       []Hook
	out         Outcome
	begin       time.Time
	skipsInARow int
	values      map[string]float64
	last        *Event // of the newest step of the session; nil where there is nothing to save
	// the newest step led back to a checkpoint: one more is made however late it is, for the run ends with a step
	back    bool
	several bool // processes make the steps together
}

func newLoop(c Config, s Stepper, hooks []Hook) (*loop, error) {
	switch {
	case c.Total <= 0 && c.Limit <= 0:
		return nil, errors.New("train: the run has no end: set a number of steps or a time limit")
	case c.Start < 0 || c.Total > 0 && c.Start > c.Total:
		return nil, fmt.Errorf("train: the checkpoint is at step %d of a run of %d: raise train.max_steps or start a new run with --resume never", c.Start, c.Total)
	case !slices.Contains([]string{"", "stop", "skip", "rollback"}, c.OnNaN):
		return nil, fmt.Errorf("train.on_nan: unknown policy (got %q): use stop, skip or rollback", c.OnNaN)
	case c.OnNaN == "rollback" && c.Rollback == nil:
		return nil, errors.New("train.on_nan: rollback needs checkpoints: set train.save_every_steps")
	}
	if c.MaxSkips <= 0 {
		c.MaxSkips = 10
	}
	if c.MaxRollbacks <= 0 {
		c.MaxRollbacks = 3
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	hooks = slices.Clone(hooks)
	sort.SliceStable(hooks, func(i, j int) bool { return hooks[i].Stage < hooks[j].Stage })
	x, ok := s.(interface{ Ranks() int })
	return &loop{
		Config: c, stepper: s, several: ok && x.Ranks() > 1, hooks: hooks, begin: c.Now(), values: map[string]float64{},
		out: Outcome{Step: c.Start, Elapsed: c.Elapsed},
	}, nil
}

func (l *loop) done() bool {
	return l.Total > 0 && l.out.Step >= l.Total || l.Limit > 0 && l.out.Elapsed >= l.Limit && !l.back
}

// stopped says whether ctx ends the run here. Several processes agree on that in Step.
func (l *loop) stopped(ctx context.Context) bool { return !l.several && ctx.Err() != nil }

// step makes one step and calls the hooks.
func (l *loop) step(ctx context.Context) error {
	start := l.Now()
	res, err := l.stepper.Step(ctx, l.out.Step)
	now := l.Now()
	l.out.Elapsed = l.Elapsed + now.Sub(l.begin)

	skipped := false
	var bad *NonFiniteError
	switch {
	case errors.As(err, &bad):
		if skipped, err = l.nonFinite(ctx, bad, err); err != nil {
			return err
		}
		if l.back = !skipped; l.back {
			return nil
		}
	case err != nil:
		return l.notMade(ctx, fmt.Errorf("train: step %d: %w", l.out.Step, err))
	case math.IsNaN(res.Loss) || math.IsInf(res.Loss, 0):
		return fmt.Errorf("train: step %d: the loss is %v after an update that should not have been made: nothing is saved", l.out.Step, res.Loss)
	default:
		l.skipsInARow, l.back = 0, false
	}
	if l.Clock != nil {
		if l.out.Elapsed, err = l.Clock(l.out.Elapsed); err != nil {
			return fmt.Errorf("train: step %d: %w", l.out.Step, err)
		}
	}
	l.out.Step++
	clear(l.values)
	res.Parts = slices.Clone(res.Parts) // for hooks that are called again when the next step is not made
	e := &Event{
		Step: l.out.Step, Total: l.Total, Result: res, Values: l.values, Skipped: skipped,
		Last: l.done(), Interrupted: l.stopped(ctx), Now: now, Elapsed: l.out.Elapsed, Before: l.Elapsed,
		StepTime: now.Sub(start),
	}
	l.last = e
	return l.after(ctx, e)
}

// notMade ends the run after a step that failed with err.
func (l *loop) notMade(ctx context.Context, err error) error {
	switch {
	case !l.stepper.Undo():
		return fmt.Errorf("%w (nothing is saved: the update had begun)", err)
	case interrupted(ctx, err):
		return l.end(ctx, ErrInterrupted, nil)
	}
	return l.end(ctx, err, nil)
}

// interrupted says whether err is that of ctx, or of ctx of other processes.
func interrupted(ctx context.Context, err error) bool {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return true
	}
	var all *parallel.Failure
	return errors.As(err, &all) && !slices.ContainsFunc(all.Texts, func(text string) bool {
		return text != "" && !strings.HasSuffix(text, context.Canceled.Error()) &&
			!strings.HasSuffix(text, context.DeadlineExceeded.Error())
	})
}

// after calls the hooks. Where one fails or the run is interrupted meanwhile, it ends.
func (l *loop) after(ctx context.Context, e *Event) error {
	for i := range l.hooks {
		h := &l.hooks[i]
		if h.After == nil {
			continue
		}
		if err := h.After(ctx, e); err != nil {
			if interrupted(ctx, err) {
				return l.end(ctx, ErrInterrupted, nil)
			}
			return l.end(ctx, h.failed(e, err), h)
		}
	}
	if l.stopped(ctx) {
		return l.end(ctx, ErrInterrupted, nil)
	}
	return nil
}

// end has the checkpoint and log hooks save the newest step before the run ends with why,
// unless they were called for the end already. The hook that failed is left out.
func (l *loop) end(ctx context.Context, why error, failed *Hook) error {
	e := l.last
	if e == nil || e.Interrupted {
		return why
	}
	e.Interrupted = true
	if why != ErrInterrupted {
		e.Err = why
	}
	var errs []error
	for i := range l.hooks {
		h := &l.hooks[i]
		if h.After == nil || h == failed || h.Stage != StageCheckpoint && h.Stage != StageLog {
			continue
		}
		if h.Stage == StageCheckpoint && deviceLost(why) { // with what would be saved
			continue
		}
		if err := h.After(ctx, e); err != nil {
			errs = append(errs, h.failed(e, err))
		}
	}
	switch {
	case errs == nil:
		return why
	case why == ErrInterrupted: // but nothing may be saved
		return errors.Join(errs...)
	}
	return cause.Join(append([]error{why}, errs...)...)
}

// deviceLost says whether an error is that of a device from which nothing can be read any more.
func deviceLost(err error) bool {
	var e interface{ Lost() bool }
	return errors.As(err, &e) && e.Lost()
}

// nonFinite applies the policy to a step that was not made. It reports whether
// the step counts as done; after a rollback it does not.
func (l *loop) nonFinite(ctx context.Context, bad *NonFiniteError, err error) (skipped bool, _ error) {
	switch l.OnNaN {
	case "skip":
		l.skipsInARow++
		if l.skipsInARow > l.MaxSkips {
			return false, l.notMade(ctx,
				fmt.Errorf("train: %d steps in a row were not finite, which skipping cannot mend: %w", l.skipsInARow,
					err))
		}
		l.out.Skipped++
		return true, nil
	case "rollback":
		if l.out.Rollbacks >= l.MaxRollbacks {
			return false, l.notMade(ctx, fmt.Errorf("train: not finite again after %d rollbacks: %w", l.out.Rollbacks,
				err))
		}
		l.out.Rollbacks++
		step, rerr := l.Rollback(ctx, bad.Step, l.out.Rollbacks)
		if rerr != nil {
			failed := fmt.Errorf("train: rollback failed: %w (after: %w)", rerr, err)
			if errors.As(rerr, new(*NoRollbackError)) {
				l.out.Rollbacks-- // none was begun
				return false, l.notMade(ctx, failed)
			}
			return false, failed
		}
		if step > l.out.Step {
			return false, fmt.Errorf("train: rollback to step %d from the earlier step %d", step, l.out.Step)
		}
		l.out.Step, l.last = step, nil
		for _, h := range l.hooks {
			if h.Rewind == nil {
				continue
			}
			if err := h.Rewind(step); err != nil {
				return false, fmt.Errorf("train: %s: rewind to step %d: %w", h.Name, step, err)
			}
		}
		return false, nil
	}
	return false, l.notMade(ctx, err)
}
