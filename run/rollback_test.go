package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// TestGoneBack: a run that goes on from an older step of its folder rolls back to that step until it has saved, and leaves the
// metrics of the checkpoints that it has not come to.
func TestGoneBack(t *testing.T) {
	dir := t.TempDir()
	sets := []string{"train.eval_every_steps=2", "train.keep_last=0", "train.on_nan=rollback"}
	trained(t, settings(t, dir, append(sets, "train.max_steps=6", "train.save_every_steps=2")...), Options{})
	step := func(n string) string { return filepath.Join(dir, "checkpoints", "step-0000000"+n) }
	metric := func() checkpoint.Metric {
		t.Helper()
		ck := check.Get(checkpoint.Load(step("4")))(t)
		defer ck.Close()
		return *ck.Metric
	}
	was := metric()

	r, err := New(t.Context(), settings(t, dir, append(sets, "train.max_steps=8", "train.save_every_steps=7", "train.keep_best_by=eval/retrieval/first/t2i_r1")...), Options{Resume: step("2")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.evaluated, r.scoreStep = true, 4
	if at, err := r.rollback(t.Context(), 4, 1); err != nil || at != 2 {
		t.Errorf("before a save back to step %d, want 2: %v", at, err)
	}
	if r.evaluated {
		t.Error("the scores of the model that it left would be those of the next step 4")
	}
	check.Get(r.Train(t.Context()))(t)
	if now := metric(); now != was {
		t.Errorf("the metric of step 4 became %v, was %v", now, was)
	}
	if at, err := r.rollback(t.Context(), 9, 1); err != nil || at != 8 {
		t.Errorf("after a save back to step %d, want 8: %v", at, err)
	}
}

// TestNothingToGoBackTo: a run that has no checkpoint when its numbers are not finite saves the steps that it has made.
func TestNothingToGoBackTo(t *testing.T) {
	dir := t.TempDir()
	r, err := New(t.Context(), settings(t, dir, "train.on_nan=rollback", "train.max_steps=20", "train.eval_every_steps=0", "optimizer.lr=1e30", "optimizer.clip_norm=0", "schedule.kind=constant", "schedule.warmup_steps=2", "schedule.warmup_lr=0"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "rollback failed") || !strings.Contains(err.Error(), "no checkpoint") {
		t.Fatalf("the run ended with %v", err)
	}
	ck := check.Get(checkpoint.Load(dir))(t)
	defer ck.Close()
	if ck.Step < 1 {
		t.Errorf("saved at step %d", ck.Step)
	}
}
