package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// A trained model is adapted by adapters of low rank: the run says how much of it is trained, goes
// on, and is evaluated; what is merged is evaluated alike, has no adapters, and is trained from.
func TestAdapters(t *testing.T) {
	dir := t.TempDir()
	base, adapted, merged, again := filepath.Join(dir, "base"), filepath.Join(dir, "adapted"), filepath.Join(dir, "merged"), filepath.Join(dir, "again")
	must(t, exitDone, tinyArgs(base, "--max-steps", "4", "--quiet")...)
	stderr := fails(t, exitFailed, []string{"merge", "--checkpoint", base, "--out", merged}, "has no adapters", "it is an ordinary checkpoint already")
	if _, err := os.Stat(merged); err == nil {
		t.Errorf("a merge that failed wrote %s: %s", merged, stderr)
	}
	args := []string{"finetune", "--checkpoint", base, "--out", adapted, "--set", "model.lora.rank=2", "--set", "model.lora.alpha=8",
		"--set", "model.lora.dropout=0.1", "--set", "optimizer.lr=0.01", "--set", "schedule.warmup_steps=0", "--set", "schedule.kind=constant"}
	_, stderr = must(t, exitDone, append(args, "--max-steps", "3")...)
	contains(t, stderr, " parameters, ", " trained, ", "left at random (image/blocks/00/attn/proj/lora_a, ")
	stdout, _ := must(t, exitDone, "inspect", adapted)
	contains(t, stdout, "text/layers/00/attention/qkv/lora_b", "96 x 2", "\ntrained ")
	_, stderr = must(t, exitDone, append(args, "--max-steps", "6")...)
	contains(t, stderr, "step 6/6")

	stdout, _ = must(t, exitDone, "merge", "--checkpoint", adapted, "--out", merged)
	contains(t, stdout, filepath.Join(merged, "checkpoints", "step-00000006"))
	fails(t, exitFailed, []string{"merge", "--checkpoint", adapted, "--out", merged}, "holds a run already")
	fails(t, exitUsage, []string{"merge", "--checkpoint", adapted}, "--out")
	stdout, _ = must(t, exitDone, "inspect", merged)
	if strings.Contains(stdout, "lora_") || strings.Contains(stdout, "\ntrained ") {
		t.Errorf("what is merged has adapters or an optimiser:\n%s", stdout)
	}
	features := func(run string) (all []float32) {
		out := filepath.Join(dir, "features", filepath.Base(run))
		must(t, exitDone, "embed", "--checkpoint", run, "--split", "test", "--out", out, "--quiet")
		f, err := safetensors.Open(filepath.Join(out, "features.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, side := range []string{"image", "text"} {
			x, err := f.Float32(side)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x...)
		}
		return all
	}
	farthest := func(a, b []float32) (d float64) {
		for i, v := range a {
			d = max(d, math.Abs(float64(v-b[i])))
		}
		return d
	}
	want := features(adapted)
	if d := farthest(features(merged), want); d > 1e-6 {
		t.Errorf("merged features differ by %.1e", d)
	}
	if d := farthest(features(base), want); d < 1e-2 {
		t.Errorf("adapters move features by no more than %.1e", d)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", merged, "--split", "test")
	contains(t, stdout, "retrieval on test: ", "step 6 of "+merged)
	fails(t, exitUsage, []string{"eval", "--checkpoint", adapted, "--set", "model.lora.rank=3"}, "model.lora.rank")
	fails(t, exitFailed, tinyArgs(merged), weightsAlone(merged)...)
	fails(t, exitFailed, append(args[:3:3], "--out", again, "--resume", merged), weightsAlone(merged)...)
	_, stderr = must(t, exitDone, "finetune", "--checkpoint", merged, "--out", again, "--max-steps", "1", "--quiet")
	if strings.Contains(stderr, "left at random") {
		t.Errorf("a run from what is merged: %s", stderr)
	}
}
