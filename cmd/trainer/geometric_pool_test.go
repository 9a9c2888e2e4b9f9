package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// geraArgs are a tiny run of alignment heads with dropout, the geometric term over pools, and a
// teacher and a queue beside it.
func geraArgs(t *testing.T) []string {
	t.Helper()
	return append(featureFiles(t, 50, 50, -1), "--set", "model.heads.hidden=12", "--set", "model.heads.layers=2", "--set", "model.heads.residual=true", "--set", "model.head.dim=8",
		"--set", "objective.geometric.weight=1", "--set", "objective.geometric.neighbours=4", "--set", "objective.geometric.chunk=8", "--set", "train.eval_every_steps=0",
		"--set", "momentum.enabled=true", "--set", "queue.size=16", "--set", "objective.itc.weight=1")
}

// A run with neighbours drawn from pools goes on from a step of it with the same bits.
func TestGeometricPoolsResumeExactly(t *testing.T) {
	dir, args := t.TempDir(), geraArgs(t)
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	run := func(out string, more ...string) {
		must(t, exitDone, append(append([]string{"train", "--quiet", "--set", "run.out=" + out, "--set", "train.save_every_steps=3", "--set", "train.keep_last=0", "--max-steps", "7"}, args...), more...)...)
	}
	run(whole)
	run(parts, "--resume", filepath.Join(whole, "checkpoints", checkpointName(3)))
	got := tensorFiles(t, parts)
	for g, want := range tensorFiles(t, whole) {
		if !bytes.Equal(got[g], want) {
			t.Errorf("%s.safetensors differs", g)
		}
	}
}

// The step that trainer data bench trains has the pools of its stream.
func TestDataBenchOfPools(t *testing.T) {
	code, stdout, stderr := trainer(t, append([]string{"data", "bench", "--seconds", "0.01", "--steps", "2"}, geraArgs(t)...)...)
	if code != exitDone || !strings.Contains(stdout, "samples/s") {
		t.Errorf("code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
}
