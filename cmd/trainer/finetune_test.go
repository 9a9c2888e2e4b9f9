package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// A model from scenes is fine-tuned on pictures of files at its own and at another
// image size, with all captions of a picture as positives, and evaluated.
func TestFinetune(t *testing.T) {
	dir := t.TempDir()
	base, tuned, large := filepath.Join(dir, "base"), filepath.Join(dir, "tuned"), filepath.Join(dir, "large")
	must(t, exitDone, tinyArgs(base, "--max-steps", "4", "--quiet")...)
	_, flags := photoData(t)
	args := append([]string{"finetune", "--checkpoint", base, "--max-steps", "4"}, flags...)

	stdout, stderr := must(t, exitDone, append(args, "--out", tuned)...)
	contains(t, stderr, "parameters from "+base, " loaded, ", "not used (text/mlm", "finetune: ", "step 4/4")
	contains(t, stdout, "retrieval on val: 10 images, 20 texts", "run folder: "+tuned)
	if strings.Contains(stderr, "resampled") || strings.Contains(stderr, "left at random") {
		t.Errorf("%s", stderr)
	}
	for _, r := range rows(t, tuned) {
		if _, ok := r.Values["loss/mlm"]; ok || r.Values["loss/itc"] == 0 {
			t.Errorf("step %d: %v", r.Step, r.Values)
		}
		// 16 pictures with 2 captions are 32 pairs, 4 batches of 8 to an epoch.
		if want := float64(r.Step) / 4; r.Values["epoch"] != want {
			t.Errorf("step %d is epoch %v, want %v", r.Step, r.Values["epoch"], want)
		}
	}
	text := check.Get(os.ReadFile(filepath.Join(tuned, "config.toml")))(t)
	contains(t, string(text), `positives = "id"`, `name = "finetune"`)

	_, stderr = must(t, exitDone, append(args, "--out", large, "--set", "model.image.size=32")...)
	contains(t, stderr, "1 resampled (image/pos_embed)")

	// The same command again finds the run finished; another start is refused.
	_, stderr = must(t, exitDone, append(args, "--out", tuned)...)
	contains(t, stderr, "the run is finished at step 4")
	args[2] = large
	fails(t, exitUsage, append(args, "--out", tuned, "--set", "model.image.size=16"), "init.checkpoint: the run in "+tuned, "was started with")
	stderr = fails(t, exitUsage, []string{"finetune", "--checkpoint", base, "--out", filepath.Join(dir, "x"), "--set", "model.image.width=64"},
		"model.image.width: the checkpoint ", "was made with 32, and image/blocks/00/attn/proj/bias has the shape [32] there and [64] here (got 64); use its value, or another checkpoint")
	if strings.Contains(stderr, "model.image.mlp") { // which follows the width
		t.Errorf("names a key that nobody set: %s", stderr)
	}
	fails(t, exitUsage, []string{"finetune", "--checkpoint", base, "--out", filepath.Join(dir, "x"), "--set", "model.text.heads=4"}, "model.text.heads:", "was made with 2 (got 4)")

	// Evaluation of the splits, with folds and as JSON.
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", large, "--split", "test")
	contains(t, stdout, "retrieval on test: 10 images, 20 texts, step 4 of "+large, "re-ranked")
	stdout, stderr = must(t, exitDone, "eval", "--checkpoint", large, "--split", "val", "--json", "--quiet", "--set", "eval.folds=5", "--set", "eval.rerank_top=0")
	m := parseJSON(t, stdout)
	// Folds of two pictures: an image has 2 right texts of 4, a text 1 right image of 2.
	if m["split"] != "val" || stderr != "" || m["first"].(map[string]any)["t2i_r5"] != 100.0 || m["first"].(map[string]any)["i2t_r5"] != 100.0 {
		t.Errorf("%s", stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", large, "--json", "--set", "eval.max_images=4")
	if m := parseJSON(t, stdout); m["images"] != 4.0 || m["texts"] != 8.0 || m["rerank"] == nil {
		t.Errorf("%s", stdout)
	}
	fails(t, exitUsage, []string{"eval", "--checkpoint", large, "--set", "eval.folds=3", "--set", "eval.rerank_top=0"}, "eval.folds: must divide the 10 images")
}

// With --config the file says what the run is, save for what fine-tuning stands for.
func TestFinetuneWithConfig(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	must(t, exitDone, tinyArgs(base, "--max-steps", "2", "--quiet")...)
	out := filepath.Join(dir, "out")
	_, stderr := must(t, exitDone, "finetune", "--checkpoint", base, "--config", tiny, "--out", out, "--max-steps", "2")
	contains(t, stderr, "tiny: ", "parameters from "+base)
	text := check.Get(os.ReadFile(filepath.Join(out, "config.toml")))(t)
	contains(t, string(text), `name = "tiny"`, `positives = "id"`, "start_steps = 3")
}

// An evaluation of a checkpoint gives the numbers that training ended with.
func TestEvalRepeatsTheEndOfTraining(t *testing.T) {
	dir := t.TempDir()
	first, _ := must(t, exitDone, tinyArgs(dir, "--max-steps", "6", "--json", "--quiet")...)
	again, _ := must(t, exitDone, "eval", "--checkpoint", dir, "--json")
	a, b := parseJSON(t, first), parseJSON(t, again)
	for _, k := range []string{"first", "rerank", "chance"} {
		x, y := a[k].(map[string]any), b[k].(map[string]any)
		for name := range x {
			if x[name] != y[name] {
				t.Errorf("%s %s: %v in training, %v in eval", k, name, x[name], y[name])
			}
		}
	}
}
