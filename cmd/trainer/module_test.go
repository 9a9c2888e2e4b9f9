package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestOtherModule: a program of another module trains with a loss of its own that has its own table in the file, goes on with the
// run, and evaluates it. What the table has wrong is told as of any other.
func TestOtherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	root, bin := check.Get(filepath.Abs("../.."))(t), filepath.Join(dir, "mine")
	// In a workspace with this module, whose packages are built already.
	work := fmt.Sprintf("go 1.26.0\nuse (\n%q\n%q\n)\n", root, filepath.Join(root, "cmd/trainer/testdata/module"))
	check.OK(t, os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o666))
	check.OK(t, os.WriteFile(filepath.Join(dir, "go.work.sum"), check.Get(os.ReadFile("../../go.sum"))(t), 0o666))
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir, cmd.Env = "testdata/module", append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	out := filepath.Join(dir, "run")
	mine := func(sets ...string) (string, error) {
		text, err := exec.Command(bin, append([]string{"testdata/module/mine.toml", "run.out=" + out}, sets...)...).CombinedOutput()
		return string(text), err
	}
	for _, steps := range []string{"3", "6"} {
		said, err := mine("train.max_steps="+steps, "train.save_every_steps=3")
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		contains(t, said, "smoothed", "evaluated a run of objective.mine.weight 1")
		if steps == "6" {
			contains(t, said, "step-00000003")
		}
	}
	said, err := mine("objective.mine.smoothing=1", "objective.mine.smothing=1")
	if err == nil {
		t.Error("a value that the section refuses is accepted")
	}
	contains(t, said, "objective.mine.smoothing: must be at least 0 and below 1 (got 1)", "objective.mine.smothing: unknown key; did you mean objective.mine.smoothing?")
}
