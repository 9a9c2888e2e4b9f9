package ablate

import (
	"cmp"
	"context"
	"fmt"
)

// TuningFolder is the folder of the trials in that of an ablation.
const TuningFolder = "tuning"

// tune makes the trials that are still to be made and opens the matrix anew with what they choose.
func (a *Ablation) tune(ctx context.Context) error {
	if _, left := a.tuning.Jobs(); left == 0 {
		return nil
	}
	fmt.Fprintf(a.note, "choosing settings in %s\n", a.tuning.Out)
	if err := a.tuning.Run(ctx); err != nil {
		return err
	}
	if err := a.tuning.Verdict(); err != nil {
		return fmt.Errorf("trials: %w", err)
	}
	b, err := Open(a.file, a.o)
	if err == nil {
		*a = *b
	}
	return err
}

// chooseTrials leaves out the trials of runs that are not made.
func (a *Ablation) chooseTrials() {
	if a.tuning == nil {
		return
	}
	wanted, needed := map[string]bool{}, map[*job]bool{}
	for _, j := range a.jobs {
		wanted[j.Run.Name] = wanted[j.Run.Name] || j.made || j.same != nil && j.same.made
	}
	for _, j := range a.tuning.jobs {
		if first := cmp.Or(j.same, j); wanted[j.Run.Group] {
			needed[first] = true
		}
	}
	for _, j := range a.tuning.jobs {
		j.made = needed[j]
	}
}

// Trials returns how many runs choose settings, and how many of them are still to be made.
func (a *Ablation) Trials() (all, left int) {
	if a.tuning == nil {
		return 0, 0
	}
	return a.tuning.Jobs()
}
