package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// explode makes the parameters so large after two steps of warm-up that the loss
// of the next step is not finite.
var explode = []string{"--set", "optimizer.lr=1e30", "--set", "optimizer.clip_norm=0", "--set", "schedule.warmup_steps=2", "--set", "schedule.warmup_lr=0",
	"--set", "schedule.kind=constant", "--set", "train.eval_every_steps=0"}

// onlyFinite fails if a number of a checkpoint of a run is not finite.
func onlyFinite(t *testing.T, dir string) {
	t.Helper()
	list, err := checkpoint.List(filepath.Join(dir, "checkpoints"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %d checkpoints", err, len(list))
	}
	for _, e := range list {
		c := check.Get(checkpoint.Load(e.Path))(t)
		defer c.Close()
		for _, g := range []string{"model", "momentum", "optimizer"} {
			f := check.Get(c.Group(g))(t)
			for _, info := range f.Tensors() {
				x := check.Get(f.Float32(info.Name))(t)
				for _, v := range x {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Fatalf("step %d: %s of %s holds %v", e.Step, info.Name, g, v)
					}
				}
			}
		}
	}
}

// A model that has diverged explains nothing, and its features are not stored.
func TestDivergedModel(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, "--set", "optimizer.lr=1e25", "--set", "optimizer.clip_norm=0", "--set", "schedule.warmup_steps=0", "--set", "schedule.kind=constant", "--set", "train.max_steps=1")
	fails(t, exitFailed, args, "evaluation after step 1", "is NaN")
	fails(t, exitFailed, []string{"explain", "--checkpoint", dir, "--row", "0"}, "the score pair is NaN: the model has diverged")
	fails(t, exitFailed, []string{"explain", "--checkpoint", dir, "--split", "test", "--out", t.TempDir()}, "the score pair is NaN: the model has diverged")
	fails(t, exitFailed, []string{"embed", "--checkpoint", dir, "--out", t.TempDir()}, "the features of row 0 are not finite")
}

func TestStopsWhenNotFinite(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, append(explode, "--set", "train.save_every_steps=1")...)
	fails(t, exitFailed, args, "is NaN", "stopped before the update", "lower optimizer.lr", "train.on_nan")
	onlyFinite(t, dir)
}

func TestSkipsWhatIsNotFinite(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, append(explode, "--set", "train.save_every_steps=1", "--set", "train.on_nan=skip")...)
	stderr := fails(t, exitFailed, args, "skipped: not finite", "11 steps in a row were not finite, which skipping cannot mend")
	if strings.Contains(stderr, "retrieval") {
		t.Errorf("%s", stderr)
	}
	onlyFinite(t, dir)
	skipped := 0
	for _, r := range rows(t, dir) {
		if r.Values["skipped"] == 1 {
			skipped++
			if _, ok := r.Values["loss"]; ok {
				t.Errorf("a skipped step has a loss: %v", r)
			}
		}
	}
	if skipped != 10 {
		t.Errorf("%d rows of skipped steps", skipped)
	}
}

func TestRollsBackWhatIsNotFinite(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, append(explode, "--set", "train.save_every_steps=1", "--set", "train.on_nan=rollback")...)
	fails(t, exitFailed, args, "was not finite: back to step", "(attempt 3)", "not finite again after 3 rollbacks")
	onlyFinite(t, dir)

	// Without a checkpoint there is nothing to go back to.
	args = tinyArgs(t.TempDir(), append(explode, "--set", "train.save_every_steps=0", "--set", "train.on_nan=rollback")...)
	fails(t, exitFailed, args, "rollback failed", "no checkpoint")
}

// The op is named with compute.check_nan.
func TestNamesTheOp(t *testing.T) {
	args := tinyArgs(t.TempDir(), append(explode, "--set", "compute.check_nan=true")...)
	fails(t, exitFailed, args, "stopped before the update", " made ")
}

// A learning rate beyond float32 makes parameters that are not finite: they are
// not saved.
func TestSavesNothingThatIsNotFinite(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, append(explode, "--set", "optimizer.lr=1e39", "--set", "train.save_every_steps=1")...)
	fails(t, exitFailed, args, "has numbers that are not finite: nothing is saved")
	onlyFinite(t, dir)
}
