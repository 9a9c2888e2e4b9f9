package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

const version1 = "../../train/checkpoint/testdata/version1"

// A run goes on from a checkpoint that the program of the first version of state.json
// wrote, and ends as that program's run did.
func TestResumeFromVersion1(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, stderr := must(t, exitDone, "train", "--config", filepath.Join(version1, "config.toml"), "--resume", version1, "--out", dir, "--set", "train.log_every_steps=1")
	contains(t, stderr, "going on from step 8 of "+version1)
	if strings.Contains(stderr, "no use for") {
		t.Errorf("parts are left aside: %s", stderr)
	}
	last := rows(t, dir)[1]
	for name, want := range map[string]float64{"loss": 4.898658275604248, "grad_norm": 8.100747180556446, "epoch": 1.4285714285714286, "graph/text/mean_path": 0.3958856030367315} {
		if got := last.Values[name]; last.Step != 10 || !(math.Abs(got-want) <= 1e-3*want) {
			t.Errorf("step %d: %s is %v, want %v", last.Step, name, got, want)
		}
	}
	must(t, exitDone, "eval", "--checkpoint", version1, "--quiet")
}

// A run of a newer program is not taken for none: nothing starts over it and nothing of
// it is removed.
func TestRunOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--max-steps", "8")...)
	step := filepath.Join(dir, "checkpoints", checkpointName(8))
	path := filepath.Join(step, "state.json")
	text := check.Get(os.ReadFile(path))(t)
	check.OK(t, os.WriteFile(path, []byte(strings.Replace(string(text), `"version": 3`, `"version": 4`, 1)), 0o666))
	checkpointtest.Reseal(t, step)
	before := names(t, filepath.Join(dir, "checkpoints"))
	fails(t, exitFailed, tinyArgs(dir), "step-00000008: state.json has version 4, this program reads version 3", "use the geoalign that wrote it or a newer one")
	fails(t, exitFailed, []string{"eval", "--checkpoint", dir}, "state.json has version 4, this program reads version 3")
	if got := names(t, filepath.Join(dir, "checkpoints")); strings.Join(got, " ") != strings.Join(before, " ") {
		t.Errorf("left %v of %v", got, before)
	}
}
