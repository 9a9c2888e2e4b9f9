package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// A run keeps the kernels of its products, and goes on with them whatever the machine's cache says.
func TestRunKeepsItsKernels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := func(steps string) []string {
		return tinyArgs(dir, "--set", "compute.threads=2", "--set", "compute.backend=builtin", "--set", "train.batch_size=64", "--set", "data.scenes.epoch_samples=256", "--set", "model.image.mlp=512", "--max-steps", steps)
	}
	train := func(steps string) string {
		t.Helper()
		code, _, stderr := spawn(t, nil, args(steps)...)
		if code != exitDone {
			t.Fatalf("code %d: %s", code, stderr)
		}
		return stderr
	}
	path := filepath.Join(dir, "kernels.json")
	read := func() (kept struct{ Products map[string]string }) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &kept)
		}
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	train("2")
	before := read().Products
	if len(before) == 0 {
		t.Skip("no product of the run is large enough for a choice")
	}
	train("4")
	for product, kernel := range read().Products {
		if was, has := before[product]; has && was != kernel {
			t.Errorf("%s has %q, had %q", product, kernel, was)
		}
	}
	check.OK(t, os.WriteFile(path, []byte("{"), 0o666))
	if text := train("5"); !strings.Contains(text, "the kernels of the run are not known") {
		t.Errorf("a damaged file: %s", text)
	}
	if err := os.Remove(path); err != nil { // as of a run of an earlier version
		t.Fatal(err)
	}
	train("6")
	if _, err := os.Stat(path); err == nil {
		t.Error("a run without kernels has some now")
	}
	text, err := os.ReadFile(filepath.Join(dir, "environment.json"))
	if err != nil || !strings.Contains(string(text), `"tune": "off"`) {
		t.Errorf("%v %s", err, text)
	}
}
