package train

import (
	"context"
	"fmt"
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
	// After is called after every step. It decides itself whether it is due. Of the stages
	// StageCheckpoint and StageLog it is called again for the newest step where the run
	// ends before its last one.
	After func(ctx context.Context, e *Event) error
	// Rewind is called after the run went back to step. May be nil.
	Rewind func(step int) error
	// End is called when the run ends, however it does. May be nil.
	End func() error
}

// failed is the error of a hook after a step.
func (h *Hook) failed(e *Event, err error) error {
	return fmt.Errorf("train: %s after step %d: %w", h.Name, e.Step, err)
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
	Interrupted bool               // the run ends here, before its last step: save, and leave out what takes long
	Err         error              // that ends the run; nil for one that was asked to stop
	Now         time.Time
	Elapsed     time.Duration // of the run, earlier sessions included
	Before      time.Duration // Elapsed when this session began
	StepTime    time.Duration // of the step alone
}

// final reports whether the process ends after this step.
func (e *Event) final() bool { return e.Last || e.Interrupted }
