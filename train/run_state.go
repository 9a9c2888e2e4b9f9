package train

import (
	"fmt"

	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// runPartName is the part of a checkpoint that holds a State.
const runPartName = "run"

// State is what a checkpoint holds of the run itself. Everything random of a run is a
// function of the seed and the counters of its parts.
type State struct {
	Step    int     `json:"step"` // updates done
	Seed    uint64  `json:"seed"`
	Elapsed float64 `json:"elapsed_seconds"` // that the run took so far
	Ranks   int     `json:"ranks,omitempty"` // processes that trained together; 0: one

	// Values are the numbers of the last step. A process that is killed after it
	// saved has not logged them yet.
	Values map[string]float64 `json:"values,omitempty"`

	// Unread are the parts of the checkpoint that the session has no use for, such as the
	// graphs of a run that goes on without. They are not in the next checkpoint.
	Unread []string `json:"-"`
}

// ReadState reads the run's own part of a checkpoint.
func ReadState(c *checkpoint.Checkpoint) (State, error) {
	var s State
	return s, c.Counters(runPartName, &s)
}

// runPart is the part of a State.
type runPart struct {
	State
	seed uint64 // of the session that is restored
}

var (
	_ state.Part    = (*runPart)(nil)
	_ state.Checker = (*runPart)(nil)
)

func (*runPart) StateName() string       { return runPartName }
func (*runPart) StateVersion() int       { return 1 }
func (r *runPart) Counters() any         { return &r.State }
func (*runPart) Tensors() []state.Tensor { return nil }

// CheckCounters implements state.Checker: another seed is another run.
func (r *runPart) CheckCounters() error {
	if r.Seed != r.seed {
		return fmt.Errorf("run.seed: the checkpoint was made with seed %d (got %d): resume with --seed %d", r.Seed,
			r.seed, r.Seed)
	}
	return nil
}
