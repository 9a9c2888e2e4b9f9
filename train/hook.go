package train

import (
	"context"
	"time"
)

// Stage is the place of a hook within a step.
type Stage int

// The stages in their order.
const (
	StageMetrics Stage = iota
	StageCheckpoint
	StageEval
	StageLog
)

// Hook is something done after steps. Of several hooks of one stage the one given
// to Run first goes first.
type Hook struct {
	Name  string // for errors
	Stage Stage
	// After is called after every step. It decides itself whether it is due.
	After func(ctx context.Context, e *Event) error
	// Rewind is called after the run went back to step. May be nil.
	Rewind func(step int) error
	// End is called when the run ends, however it does. May be nil.
	End func() error
}

// Event is what hooks see of a step. It is valid during the call only.
type Event struct {
	Step        int // updates done, this one included
	Total       int // updates of the run; 0: not known
	Result      StepResult
	Values      map[string]float64 // numbers to log; metrics and evaluations add theirs
	Skipped     bool               // the update was left out, because a number was not finite
	Evaluated   bool               // Values hold an evaluation
	Last        bool               // the run ends with this step
	Interrupted bool               // the user asked to stop: save, and leave out what takes long
	Now         time.Time
	Elapsed     time.Duration // of the run, earlier sessions included
	StepTime    time.Duration // of the step alone
}

// final reports whether the process ends after this step.
func (e *Event) final() bool { return e.Last || e.Interrupted }
