package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOtherModule: a program of another module trains with a loss of its own that has its own table in the file, goes on with the
// run, and evaluates it. What the table has wrong is told as of any other.
func TestOtherModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir := t.TempDir()
	build := func(to, from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build("go.sum", "../../go.sum")
	build("go.mod", "testdata/module/go.mod")
	bin := filepath.Join(dir, "mine")
	// The checksums are those of this module, and what it needs besides is written beside the copy.
	cmd := exec.Command("go", "build", "-mod=mod", "-modfile="+filepath.Join(dir, "go.mod"), "-o", bin, ".")
	cmd.Dir = "testdata/module"
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
