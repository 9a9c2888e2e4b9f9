package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// smallModel is a model whose step takes milliseconds.
var smallModel = []string{
	"--set", "model.image.size=32", "--set", "model.image.patch=16", "--set", "model.image.depth=1", "--set", "model.image.width=16",
	"--set", "model.image.heads=2", "--set", "model.text.layers=1", "--set", "model.text.fusion_layers=1", "--set", "model.text.width=16",
	"--set", "model.text.heads=2", "--set", "model.head.dim=8", "--set", "queue.size=16", "--set", "train.batch_size=4",
	"--set", "data.vocab_size=200", "--set", "compute.backend=plain",
}

func TestDataBenchScenes(t *testing.T) {
	args := append([]string{"data", "bench", "--seconds", "0.01", "--workers", "1,3", "--steps", "3", "--json"}, smallModel...)
	code, stdout, stderr := trainer(t, args...)
	if code != exitDone || stderr != "" {
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	m := parseJSON(t, stdout)
	loader, stages, step := m["loader"].([]any), m["stages"].([]any), m["step"].(map[string]any)
	if len(loader) != 2 || loader[1].(map[string]any)["workers"] != 3.0 || loader[1].(map[string]any)["samples_per_second"].(float64) <= 0 {
		t.Errorf("loader %v", loader)
	}
	share := 0.0
	var names []string
	for _, s := range stages {
		share += s.(map[string]any)["share"].(float64)
		names = append(names, s.(map[string]any)["stage"].(string))
	}
	if want := "draw resize augment normalise text"; strings.Join(names, " ") != want || share < 0.999 || share > 1.001 {
		t.Errorf("stages %q with shares of %v together, want %q", names, share, want)
	}
	if w := step["wait_share"].(float64); step["steps"] != 3.0 || w < 0 || w > 1 || step["free_step_ms"].(float64) <= 0 || step["step_ms"].(float64) <= 0 {
		t.Errorf("step %v", step)
	}
	if v := m["verdict"].(string); !strings.HasPrefix(v, "waiting ") {
		t.Errorf("verdict %q", v)
	}
}

func TestDataBenchFilesWithCache(t *testing.T) {
	set := twoCaptions(t) // one good image, one missing
	dir := t.TempDir()
	args := append([]string{"data", "bench", "--seconds", "0.01", "--samples", "2", "--set", "data.max_bad_share=1", "--set", "data.drop_last=false",
		"--set", "data.cache=disk", "--set", "data.cache_dir=" + dir, "--set", "data.vocab_size=64", "--set", "train.batch_size=4", "--set", "queue.size=0",
		"--set", "momentum.enabled=false", "--set", "objective.distill.alpha=0", "--set", "objective.itc.weight=0", "--set", "objective.itc.in_batch_weight=1"}, set...)
	code, stdout, stderr := trainer(t, args...)
	if code != exitDone || stderr != "" {
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"stage", "cache", "samples/s", "samples are bad", "of the images came from it", "the loader makes up to"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*", "*.rgb")); len(list) != 1 {
		t.Errorf("entries %q, want the one good image", list)
	}
}

func TestDataBenchFailures(t *testing.T) {
	set := twoCaptions(t)
	bad := filepath.Join(t.TempDir(), "list.json")
	check.OK(t, os.WriteFile(bad, []byte(`[{"image": "none.png", "caption": "a sheet of paper"}]`), 0o644))
	for _, r := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--seconds", "0"}, exitUsage, "--seconds must be > 0"},
		{[]string{"--seconds", "NaN"}, exitUsage, "--seconds must be > 0 and at most 86400"},
		{[]string{"--steps", "-1"}, exitUsage, "--steps >= 0"},
		{[]string{"--workers", "2,0"}, exitUsage, "--workers must be > 0 (got 0)"},
		{[]string{"--set", "data.cache=memory"}, exitUsage, "must be none for scenes"},
		{append([]string{"--set", "data.cache=disk"}, set...), exitUsage, "must name a folder"},
		{append(append([]string{"--seconds", "0.01", "--set", "data.vocab_size=64"}, set...), "--set", "data.captions.train_files="+bad), exitFailed, "trainer data check"},
	} {
		code, _, stderr := trainer(t, append([]string{"data", "bench"}, r.args...)...)
		if code != r.code || !strings.Contains(stderr, r.want) {
			t.Errorf("%q: code %d, stderr %q, want %d and %q", r.args, code, stderr, r.code, r.want)
		}
	}
}
