package train

import (
	"context"
	"fmt"
	"time"
)

// Stepper makes optimisation steps.
type Stepper interface {
	// Step makes the update that follows step earlier ones. Before it changes
	// anything it tests loss and gradient norm, and returns a *NonFiniteError with
	// parameters, moments, queues and twins as they were; its position in the data
	// does move on. A cancelled ctx ends the step with its error as soon as what was
	// begun can still be taken back; an update in progress is finished.
	Step(ctx context.Context, step int) (StepResult, error)
	// Undo goes back to where the last call of Step, which failed, began, position in
	// the data included: the same step made again gives the same numbers. It returns
	// false, and changes nothing, where the update had begun and may be half made.
	Undo() bool
}

// Value is a named number.
type Value struct {
	Name    string
	Value   float64
	Measure bool // no part of the loss: logged under its own name
}

// StepResult is what a step reports.
type StepResult struct {
	Loss        float64
	Parts       []Value // of the loss, in the order to print them
	GradNorm    float64 // before clipping
	LR          float64
	TowerLR     []Value       // rates of the last blocks of towers with a rate of their own, as lr/image
	Temperature float64       // 0 where the model has none
	Samples     int           // of all micro-batches
	DataWait    time.Duration // time that the step waited for data
	Fit         bool          // the step is a fit in closed form: of these it has parts and samples
}

// NonFiniteError reports that a step was not made because a number was not finite.
type NonFiniteError struct {
	Step int    // updates made before
	What string // which number, such as "loss/itc is NaN"
	Op   bool   // What names the op that made it, as compute.check_nan finds it
}

// Error names the number and where to look.
func (e *NonFiniteError) Error() string {
	look := "look for the op with compute.check_nan = true, "
	if e.Op {
		look = ""
	}
	return fmt.Sprintf("train: step %d: %s: stopped before the update: lower optimizer.lr, set optimizer.clip_norm, %sor go on with train.on_nan = \"skip\" or \"rollback\"", e.Step, e.What, look)
}
