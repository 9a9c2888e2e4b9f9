package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// alignArgs are the arguments of a closed form over rotated features of 12 channels.
func alignArgs(t *testing.T, n int) []string {
	data := rotatedFeatures(t, n, 12)
	at := slices.Index(data, "model.heads.hidden=64") - 1
	return append([]string{"--config", "../../configs/align.toml"}, slices.Concat(data[2:at], []string{"--set", "eval.batch_size=20"})...)
}

// TestAlignFromTheCommandLine fits each method to two files of features, and evaluates, embeds,
// draws and inspects it like any other run. With the same command a fitted run is only evaluated.
func TestAlignFromTheCommandLine(t *testing.T) {
	data := alignArgs(t, 300)
	for method, least := range map[string]float64{"cca": 95, "ridge": 95, "procrustes": 95, "csa": 95, "asif": 20, "wasserstein": 95} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			train := append([]string{"train", "--out", dir, "--json", "--set", "model.align.method=" + method, "--set", "model.align.wasserstein.restarts=0"}, data...)
			stdout, stderr := must(t, exitDone, train...)
			contains(t, stderr, "step 1/1  ", "cosine ", "220 pairs")
			fitted := parseJSON(t, stdout)["first"].(map[string]any)
			if r1 := fitted["i2t_r1"].(float64); r1 < least {
				t.Errorf("R@1 %v of rotated features, chance is 2.5: %s", r1, stdout)
			}
			log := check.Get(os.ReadFile(filepath.Join(dir, "metrics.jsonl")))(t)
			contains(t, string(log), `"fit/cosine":`, `"eval/retrieval/first/r_mean":`)
			if strings.Contains(string(log), `"lr"`) || strings.Contains(string(log), `"loss"`) {
				t.Errorf("a fit has no rate and no loss: %s", log)
			}
			for _, args := range [][]string{train, {"eval", "--checkpoint", dir, "--json"}} {
				stdout, _ = must(t, exitDone, args...)
				if again := parseJSON(t, stdout)["first"].(map[string]any); again["rsum"] != fitted["rsum"] {
					t.Errorf("%s says %s, the fit %v", args[0], stdout, fitted)
				}
			}
			stdout, _ = must(t, exitDone, "embed", "--checkpoint", dir, "--json")
			if m := parseJSON(t, stdout); m["images"] != 40.0 || m["texts"] != 40.0 || m["product"] != true || m["space"] != "sphere" {
				t.Errorf("embed: %s", stdout)
			}
			files := strings.TrimPrefix(data[slices.IndexFunc(data, func(a string) bool { return strings.HasPrefix(a, "data.root=") })], "data.root=")
			all, text := filepath.Join(dir, "all"), filepath.Join(files, "text.safetensors")
			must(t, exitDone, "embed", "--checkpoint", dir, "--rows", filepath.Join(files, "image.safetensors"), "--out", all)
			_, _, found := hits(t, all, "--text-features", text, "--k", "1")
			right := 0
			for i, h := range found.Queries {
				if h[0].Row == i {
					right++
				}
			}
			if 100*right < int(least)*len(found.Queries) {
				t.Errorf("%d of %d rows find their own", right, len(found.Queries))
			}
			// A query needs no file of the training.
			gone := filepath.Join(files, "image.safetensors")
			check.OK(t, os.Rename(gone, gone+".gone"))
			hits(t, all, "--text-features", text, "--k", "1")
			check.OK(t, os.Rename(gone+".gone", gone))
			must(t, exitDone, "report", dir, "--quiet")
			stdout, _ = must(t, exitDone, "inspect", dir)
			contains(t, stdout, "alignment", "image.", "text.")
			stdout, _ = must(t, exitDone, "inspect", dir, "--verify")
			contains(t, stdout, "alignment.safetensors", "whole")
		})
	}
}

// TestAlignRefusals gives a fitted map what it cannot be used with.
func TestAlignRefusals(t *testing.T) {
	data, wide, dir := alignArgs(t, 200), rotatedFeatures(t, 200, 9), t.TempDir()
	train := append([]string{"train", "--out", dir}, data...)
	must(t, exitDone, append(train, "--quiet")...)
	fails(t, exitUsage, append(train, "--set", "model.align.method=csa"), `model.align.method: the run in `, `was started with "cca" (got "csa")`)
	fails(t, exitUsage, append(train, "--set", "model.align.cca.power=0"), `model.align.cca.power: the run in `)
	fails(t, exitUsage, append(train, "--set", "init.checkpoint="+dir), `init.checkpoint: must be empty`)
	fails(t, exitUsage, append(train, "--set", "data.kind=scenes"), `data.kind: must be "pairs" to train or evaluate model.system "align"`)
	fails(t, exitUsage, append(train, "--set", "eval.rerank_top=3"), `eval.rerank_top: must be 0`)
	fails(t, exitUsage, append([]string{"bench"}, data...), "model.system: has no steps")
	fails(t, exitUsage, []string{"average", "--checkpoint", dir, "--last", "2", "--out", t.TempDir() + "/mean"}, `model.system = "align" is fitted at once, and has one checkpoint`)
	fails(t, exitUsage, []string{"finetune", "--checkpoint", dir}, `init.checkpoint: must be empty`, `model.system "align" is fitted`)
	fails(t, exitUsage, []string{"eval", "--checkpoint", dir, "--set", wide[3]}, "data.pairs.image: has rows of 9 numbers, and the checkpoint is a map of rows of 12")
	fails(t, exitUsage, append([]string{"train", "--out", t.TempDir(), "--set", "init.checkpoint=" + dir}, rotatedFeatures(t, 200, 12)...), `model.system: the checkpoint `, `was made with "align" (got "heads")`)
	_, stderr := must(t, exitDone, append([]string{"validate", "--set", "optimizer.lr=-1"}, data...)...)
	contains(t, stderr, "optimizer.lr is set but nothing reads it")
	stdout, _ := must(t, exitDone, append([]string{"train", "--dry-run"}, data...)...)
	contains(t, stdout, " for 1 step of ", " samples\n")
	stdout, _ = must(t, exitDone, append([]string{"train", "--dry-run", "--json"}, data...)...)
	if p := parseJSON(t, stdout); p["parameters"] != float64(2*(12*12+12)) || p["steps"] != 1.0 {
		t.Errorf("dry run: %s", stdout)
	}
	file := filepath.Join(dir, "checkpoints", checkpointName(1), "alignment.safetensors")
	zeroed(t, file)
	for _, args := range [][]string{{"eval", "--checkpoint", dir}, {"report", dir}, {"inspect", dir, "--verify"}} {
		fails(t, exitFailed, args, "is damaged: alignment.safetensors has checksum ")
	}
}

// TestHeadsStart trains linear heads that start from a closed form.
func TestHeadsStart(t *testing.T) {
	data := append(rotatedFeatures(t, 300, 12), "--set", "model.heads.layers=0", "--set", "schedule.warmup_steps=0", "--set", "optimizer.lr=1e-7", "--set", "schedule.warmup_lr=0", "--set", "schedule.min_lr=0")
	for start, more := range map[string][]string{"cca": {"12 of 16 channels"}, "procrustes": {"--set", "model.head.dim=12"},
		"ridge": {"--set", "model.align.ridge.direction=text_to_image", "--set", "model.head.dim=12"}} {
		out := t.TempDir()
		args := append([]string{"train", "--out", out, "--max-steps", "1", "--json", "--set", "model.heads.start=" + start}, data...)
		told := "linear heads start from " + start + " of 220 pairs"
		if len(more) == 1 {
			told += ": " + more[0]
		} else {
			args = append(args, more...)
		}
		stdout, stderr := must(t, exitDone, args...)
		contains(t, stderr, told)
		if r1 := parseJSON(t, stdout)["first"].(map[string]any)["i2t_r1"].(float64); r1 < 95 {
			t.Errorf("%s: R@1 %v after a step that moves nothing, chance is 2.5", start, r1)
		}
		must(t, exitDone, "finetune", "--checkpoint", out, "--max-steps", "1", "--quiet", "--out", filepath.Join(out, "tuned"))
	}
	args := append([]string{"train", "--out", t.TempDir()}, data...)
	fails(t, exitUsage, append(args, "--set", "model.heads.start=procrustes", "--set", "model.head.dim=8"), "model.head.dim: must be at least 12", "(got 8)")
	fails(t, exitUsage, append(args, "--set", "model.heads.start=cca", "--set", "model.heads.layers=1"), "model.heads.start: must be empty with hidden layers", "set model.heads.layers = 0")
	fails(t, exitUsage, append(args, "--set", "model.heads.start=cca", "--set", "model.head.topology=Ob(8,2)"), "model.heads.start: must be empty on another space than a sphere")
	fails(t, exitUsage, append(args, "--set", "model.heads.start=ridge"), `model.heads.start: cannot be "ridge" both ways`)
	fails(t, exitUsage, append(args, "--set", "model.heads.start=asif"), "model.heads.start: must be empty or one of ")
}
