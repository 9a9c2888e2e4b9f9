package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// TestCautions: a run that learned nothing says so at its end, in JSON, on its page and in an evaluation; its log
// stays numbers.
func TestCautions(t *testing.T) {
	dir := t.TempDir()
	still := tinyArgs(dir, "--max-steps", "24", "--set", "optimizer.clip_norm=1e-30", "--set", "optimizer.decay=0", "--set", "train.log_every_steps=1", "--set", "train.eval_every_steps=0", "--set", "eval.rerank_top=0")
	stdout, _ := must(t, exitDone, still...)
	contains(t, stdout, "note: nothing was learned: 24 steps moved the parameters by", "note: image to text is not above chance: R@1", "note: 12 images: one is 8.3 points")
	stdout, _ = must(t, exitDone, append(still, "--json", "--quiet")...) // it is only evaluated
	notes, _ := parseJSON(t, stdout)["notes"].([]any)
	if len(notes) < 2 {
		t.Errorf("notes %v of %s", notes, stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", dir, "--quiet")
	contains(t, stdout, "note: text to image is not above chance")
	must(t, exitDone, "report", dir, "--no-model", "--quiet")
	page := check.Get(os.ReadFile(filepath.Join(dir, "report.html")))(t)
	contains(t, string(page), "image to text is not above chance")
	log := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
	if strings.Contains(string(log), "notes") {
		t.Error("metrics.jsonl has words")
	}
}

// TestCautionsOfDivergence: a loss far above its start is told.
func TestCautionsOfDivergence(t *testing.T) {
	stdout, _ := must(t, exitDone, tinyArgs(t.TempDir(), "--max-steps", "12", "--set", "optimizer.lr=100", "--set", "schedule.kind=constant", "--set", "schedule.warmup_steps=0",
		"--set", "train.on_nan=skip", "--set", "train.eval_every_steps=0", "--set", "train.log_every_steps=1", "--quiet")...)
	contains(t, stdout, "note: the loss diverged: it began at ")
}

// TestCautionsOfColumns: validate, align-forecast and train tell of a column that alone decides, and search compares
// rows that have no direction as the message of the cosine proposes.
func TestCautionsOfColumns(t *testing.T) {
	dir := t.TempDir()
	const n, d = 60, 6
	image, text := make([]float32, n*d), make([]float32, n*d)
	for i := range image {
		image[i] = float32((i*7919)%101) / 100
		text[i] = image[i]
	}
	for i := range n {
		text[i*d+2] *= 1e15
	}
	clear(image[3*d : 4*d])
	bad := slices.Clone(image)
	bad[5*d+1] = float32(math.NaN())
	for name, x := range map[string][]float32{"image": image, "text": text, "bad": bad} {
		var b bytes.Buffer
		check.OK(t, safetensors.Write(&b, []safetensors.Tensor{{Name: "x", Shape: []int{n, d}, Data: x}}, nil))
		check.OK(t, os.WriteFile(filepath.Join(dir, name+".safetensors"), b.Bytes(), 0o666))
	}
	data := []string{"--config", "../../configs/align.toml", "--set", "data.root=" + dir, "--set", "data.pairs.image=image.safetensors", "--set", "data.pairs.text=text.safetensors",
		"--set", "data.pairs.val_samples=4", "--set", "data.pairs.test_samples=20"}
	const told = "note: column 2 of text.safetensors has 100 % of the variance of all 6"
	_, stderr := must(t, exitDone, append([]string{"validate"}, data...)...)
	contains(t, stderr, told)
	stdout, _ := must(t, exitDone, "align-forecast", filepath.Join(dir, "image.safetensors"), filepath.Join(dir, "text.safetensors"))
	contains(t, stdout, told)
	stdout, _ = must(t, exitDone, append([]string{"train", "--out", filepath.Join(dir, "run"), "--quiet"}, data...)...)
	contains(t, stdout, told)

	// The advice of a row that is not a number works for a closed form too.
	embed := []string{"embed", "--checkpoint", filepath.Join(dir, "run"), "--rows", filepath.Join(dir, "bad.safetensors"), "--out", filepath.Join(dir, "gallery")}
	fails(t, exitFailed, embed, "row 5 is not finite", "--skip-bad leaves out what cannot be read")
	stdout, _ = must(t, exitDone, append(embed, "--skip-bad")...)
	contains(t, stdout, "59 images", "1 left out")

	search := []string{"search", filepath.Join(dir, "image.safetensors"), "--row", "0"}
	fails(t, exitFailed, search, "row 3 of the pool is zero and has no direction for a cosine", "trainer search --metric l2")
	stdout, _ = must(t, exitDone, append(search, "--metric", "l2")...)
	contains(t, stdout, "by l2")
	fails(t, exitUsage, append(search, "--metric", "manhattan"), `--metric: search: no metric "manhattan": choose cosine, inner or l2`)
}

// TestValidateFolds: what train refuses of eval.folds validate finds.
func TestValidateFolds(t *testing.T) {
	args := []string{"validate", "--config", tiny, "--set", "eval.rerank_top=0"}
	fails(t, exitUsage, append(args, "--set", "eval.folds=5"), "eval.folds: must divide the 12 images of the split (got 5)")
	must(t, exitDone, append(args, "--set", "eval.folds=4")...)
}
