package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// TestAFailingRunKeepsOlderCheckpoints: what is saved because the run fails takes the place of none, which may be the one to go back to. The
// next save of a run that goes on does.
func TestAFailingRunKeepsOlderCheckpoints(t *testing.T) {
	r, err := New(t.Context(), settings(t, t.TempDir(), "train.max_steps=2", "train.keep_last=1", "train.keep_best=0", "train.eval_every_steps=0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	check.Get(r.Train(t.Context()))(t)
	save := func(e *train.Event, want ...int) {
		t.Helper()
		check.OK(t, r.save(e))
		list, err := checkpoint.List(r.store.Dir())
		var steps []int
		for _, x := range list {
			steps = append(steps, x.Step)
		}
		if err != nil || !slices.Equal(steps, want) {
			t.Errorf("after step %d the run has the checkpoints %v, want %v (%v)", e.Step, steps, want, err)
		}
	}
	save(&train.Event{Step: 3, Err: errors.New("the disk is gone")}, 2, 3)
	save(&train.Event{Step: 4}, 4)
}
