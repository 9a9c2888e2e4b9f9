package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestEvalProbe: the probe of a run of images and captions, for people and as JSON.
func TestEvalProbe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, tinyArgs(dir, "--max-steps", "2")...)
	eval := []string{"eval", "--checkpoint", dir, "--task", "probe", "--set", "eval.probe_samples=40"}
	stdout, stderr := must(t, 0, eval...)
	contains(t, stdout, "probe on val: 40 training images, 12 images, 64 classes, step 2 of "+dir, "linear", "k-NN", "chance")
	stdout, _ = must(t, 0, append(eval, "--json", "--split", "test")...)
	if strings.Contains(stderr, "fitted to images of the split") {
		t.Errorf("of the split val: %s", stderr)
	}
	var got map[string]any
	check.OK(t, json.Unmarshal([]byte(stdout), &got))
	if got["task"] != "probe" || got["split"] != "test" || got["images"] != 10. || got["train"] != 40. || got["top1"] == nil || got["knn_top1"] == nil {
		t.Errorf("%v", got)
	}
}

// TestProbeOfTrainingImages: figures of the images that the classifier was fitted to come with a note.
func TestProbeOfTrainingImages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, tinyArgs(dir, "--max-steps", "2")...)
	eval := []string{"eval", "--checkpoint", dir, "--task", "probe", "--set", "data.kind=folder", "--set", "data.root=" + classFolder(t, "circle", "square")}
	_, stderr := must(t, 0, append(eval, "--split", "train")...)
	contains(t, stderr, "note: the probe is fitted to images of the split train")
}
