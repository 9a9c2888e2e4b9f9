package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights/weightstest"
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

// What is in the file is read where it fits alone: a damaged row, an image that changed and one that was bad are
// computed anew, and another tower or other preparation has a file of its own.
func TestCacheFeaturesAnew(t *testing.T) {
	dir := t.TempDir()
	photoDir, photos := photoData(t)
	cache, n := filepath.Join(dir, "cache"), 0
	train := func(more ...string) (out, stderr string) {
		t.Helper()
		n++
		out = filepath.Join(dir, fmt.Sprint(n))
		_, stderr = must(t, exitDone, tinyArgs(out, slices.Concat(photos, sets(dualSets...), sets("model.image.freeze=true", "data.cache_features=true", "data.cache_dir="+cache, "data.max_bad_share=0.5"), []string{"--max-steps", "4"}, more)...)...)
		return out, stderr
	}
	first, stderr := train()
	contains(t, stderr, "frozen image tower: features of 16 images, 0.0 MB in "+cache, ", 16 to compute")
	files, err := filepath.Glob(filepath.Join(cache, "image-*.tower"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	whole := check.Get(os.ReadFile(files[0]))(t)
	row := len(whole) / 16
	damaged := slices.Clone(whole)
	damaged[3*row+40]++
	clear(damaged[5*row : 6*row])
	check.OK(t, os.WriteFile(files[0], damaged[:15*row+7], 0o666))
	again, stderr := train()
	contains(t, stderr, ", 3 to compute")
	sameRun(t, again, first)

	changed := filepath.Join(photoDir, "train", "002.png")
	before := check.Get(os.ReadFile(changed))(t)
	check.OK(t, os.WriteFile(changed, before[:50], 0o666))
	for range 2 { // a bad image is tried again
		_, stderr = train()
		contains(t, stderr, ", 1 to compute", "1 image of 1 could not be read, the first: ", "bad")
	}
	check.OK(t, os.WriteFile(changed, before, 0o666))
	again, stderr = train()
	contains(t, stderr, ", 1 to compute")
	sameRun(t, again, first)
	for _, other := range []string{"run.seed=8", "model.image.resize=crop", "model.image.heads=4"} {
		_, stderr = train("--set", other)
		contains(t, stderr, ", 16 to compute")
	}
	_, stderr = train("--set", "model.text.heads=4")
	contains(t, stderr, ", 0 to compute")

	plan, _ := must(t, exitDone, tinyArgs(filepath.Join(dir, "dry"), slices.Concat(photos, sets(dualSets...), sets("model.image.freeze=true", "data.cache_features=true", "data.cache_dir="+filepath.Join(dir, "none")), []string{"--dry-run"})...)...)
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Errorf("a dry run wrote features: %s", plan)
	}
	fails(t, exitFailed, tinyArgs(filepath.Join(dir, "full"), slices.Concat(photos, sets(dualSets...), sets("model.image.freeze=true", "data.cache_features=true", "data.cache_dir="+filepath.Join(dir, "none"), "data.cache_max_gb=0.000001"))...),
		"data.cache_max_gb")
}

// configs/lit.toml trains a text tower to the stored weights of a ViT, which it keeps.
func TestLiT(t *testing.T) {
	_, photos := photoData(t)
	weights, dir := weightstest.Stored(t, "vit"), t.TempDir()
	stdout, _ := must(t, exitDone, "import", "--from", weights, "--settings")
	var flags []string
	for f := range strings.FieldsSeq(stdout) {
		if strings.HasPrefix(f, "model.image.") || strings.HasPrefix(f, "init.image.") {
			flags = append(flags, "--set", f)
		}
	}
	out := filepath.Join(dir, "run")
	_, stderr := must(t, exitDone, slices.Concat([]string{"train", "--config", "../../configs/lit.toml", "--out", out, "--max-steps", "3"}, photos, flags,
		sets("data.cache_dir="+filepath.Join(dir, "cache"), "data.vocab_size=100", "model.text.layers=1", "model.text.width=32", "model.text.heads=2", "model.head.dim=8", "train.batch_size=8", "eval.batch_size=10"))...)
	contains(t, stderr, "frozen image tower: features of 16 images", ", 16 to compute", "step 3/3")
	stored, trained := floats(t, filepath.Join(weights, "model.safetensors")), floats(t, filepath.Join(out, "checkpoints", "step-00000003", "model.safetensors"))
	if !slices.Equal(trained["image/norm/weight"], stored["layernorm.weight"]) && !slices.Equal(trained["image/norm/weight"], stored["vit.layernorm.weight"]) {
		t.Errorf("the locked tower changed")
	}
}
