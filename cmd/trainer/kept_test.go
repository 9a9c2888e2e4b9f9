package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dualSets make the tiny run one of a dual encoder.
var dualSets = []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0",
	"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0"}

// A run that trains from features of frozen towers in files ends with the same bits as one that computes them in each
// step, also when it was interrupted, and a later run finds what it wrote.
func TestCacheFeatures(t *testing.T) {
	_, photos := photoData(t)
	for name, c := range map[string]struct {
		sets  []string
		tells []string // of which towers
	}{
		"image":    {append(slices.Clone(dualSets), "model.image.freeze=true"), []string{"image"}},
		"text":     {append(slices.Clone(dualSets), "model.text.freeze=true", "data.flip=true", "data.crop_scale_min=0.5"), []string{"text"}},
		"both":     {append(slices.Clone(dualSets), "model.image.freeze=true", "model.text.freeze=true", "model.head.topology='Multi(4,4)'", "model.text.positions=24", "objective.itc.positives=id"), []string{"image", "text"}},
		"features": {append(slices.Clone(dualSets), "model.image.freeze=true", "train.accumulate=features", "train.accumulate_steps=2", "train.batch_size=4"), []string{"image"}},
		"teacher":  {[]string{"model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0", "model.image.freeze=true"}, []string{"image"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plain, kept, parts, cache := filepath.Join(dir, "plain"), filepath.Join(dir, "kept"), filepath.Join(dir, "parts"), filepath.Join(dir, "cache")
			args := func(out string, more ...string) []string {
				return tinyArgs(out, slices.Concat(photos, sets(c.sets...), []string{"--max-steps", "7", "--set", "train.log_every_steps=1"}, more)...)
			}
			with := []string{"--set", "data.cache_features=true", "--set", "data.cache_dir=" + cache}
			must(t, exitDone, args(plain, "--quiet")...)
			_, stderr := must(t, exitDone, args(kept, with...)...)
			for _, tower := range c.tells {
				contains(t, stderr, "frozen "+tower+" tower: features of ", " to compute")
			}
			sameRun(t, kept, plain)
			if files, _ := os.ReadDir(cache); len(files) != len(c.tells) {
				t.Errorf("files %v", files)
			}
			if interrupted(t, parts, 3, args(parts, with...)...) != exitInterrupted {
				t.Error("the run was not interrupted")
			}
			_, stderr = must(t, exitDone, args(parts, with...)...)
			if n := strings.Count(stderr, ", 0 to compute"); n != len(c.tells) {
				t.Errorf("features of %d towers were found:\n%s", n, stderr)
			}
			sameRun(t, parts, plain)
		})
	}
}
