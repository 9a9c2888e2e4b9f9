package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// featureFile writes n rows of w numbers as a .npy file; bad says which row is not finite.
func featureFile(t *testing.T, path string, n, w, bad int) {
	t.Helper()
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }\n", n, w)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	b = append(b, header...)
	for i := range n * w {
		v := float32(i%17) + float32(i)/100 + 1
		if i/w == bad {
			v = float32(math.NaN())
		}
		u := math.Float32bits(v)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	check.OK(t, os.WriteFile(path, b, 0o644))
}

// featureFiles writes two files of pairs and returns the arguments that select them.
func featureFiles(t *testing.T, images, texts, bad int) []string {
	t.Helper()
	dir := t.TempDir()
	featureFile(t, filepath.Join(dir, "image.npy"), images, 6, bad)
	featureFile(t, filepath.Join(dir, "text.npy"), texts, 4, -1)
	return []string{"--set", "model.system=heads", "--set", "data.kind=pairs", "--set", "data.root=" + dir, "--set", "data.pairs.image=image.npy",
		"--set", "data.pairs.text=text.npy", "--set", "data.pairs.val_samples=10", "--set", "data.pairs.test_samples=0", "--set", "model.heads.in_image=6", "--set", "model.heads.in_text=4",
		"--set", "momentum.enabled=false", "--set", "objective.itc.weight=0", "--set", "objective.itm.weight=0", "--set", "objective.mlm.weight=0",
		"--set", "queue.size=0", "--set", "objective.distill.alpha=0", "--set", "objective.itc.in_batch_weight=1", "--set", "eval.rerank_top=0", "--set", "train.batch_size=8"}
}

// The commands that look at data know rows of stored features.
func TestDataOfPairs(t *testing.T) {
	clean, spoilt := featureFiles(t, 50, 50, -1), featureFiles(t, 50, 50, 7)
	code, stdout, stderr := trainer(t, append([]string{"data", "check"}, clean...)...)
	if code != exitDone || !strings.Contains(stdout, "train: 40 pairs, 0 findings") || !strings.Contains(stdout, "val: 10 pairs") || strings.Contains(stdout, "test") {
		t.Errorf("check: code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	code, stdout, stderr = trainer(t, append([]string{"data", "check"}, spoilt...)...)
	if code != exitFailed || !strings.Contains(stdout, "! bad row: 1") || !strings.Contains(stdout, "image.npy: row 7 is not finite (got NaN in column 0)") {
		t.Errorf("check of a bad row: code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	code, stdout, stderr = trainer(t, append([]string{"data", "stats"}, spoilt...)...)
	for _, want := range []string{"pairs", "train", "image features", "6 F32", "4 F32", "text norms", "rows that are not finite"} {
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("stats: code %d, %q is missing in %s (%s)", code, want, stdout, stderr)
		}
	}
	more := filepath.Join(t.TempDir(), "more.npy")
	featureFile(t, more, 25, 4, -1)
	budget := append(append([]string(nil), clean...), "--set", "data.pairs.paired=15", "--set", "data.pairs.text_pool="+more)
	code, stdout, stderr = trainer(t, append([]string{"data", "stats"}, budget...)...)
	for _, want := range []string{"unpaired images of training: 25 (25 of the file of the pairs, 0 of data.pairs.image_pool)", "unpaired texts of training: 50 (25 of the file of the pairs, 25 of data.pairs.text_pool)"} {
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("stats of a budget: code %d, %q is missing in %s (%s)", code, want, stdout, stderr)
		}
	}
	if code, stdout, stderr = trainer(t, append([]string{"data", "check"}, budget...)...); code != exitDone || !strings.Contains(stdout, "train: 15 pairs, 0 findings") {
		t.Errorf("check of a budget: code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	code, stdout, _ = trainer(t, append([]string{"data", "stats", "--json", "--split", "val"}, clean...)...)
	if m := parseJSON(t, stdout); code != exitDone || m["splits"].([]any)[0].(map[string]any)["pairs"] != 10.0 {
		t.Errorf("stats: code %d, %s", code, stdout)
	}
	code, stdout, stderr = trainer(t, append([]string{"data", "bench", "--seconds", "0.02"}, clean...)...)
	if code != exitDone || !strings.Contains(stdout, "samples/s") || strings.Contains(stdout, "pixels") {
		t.Errorf("bench: code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	for _, r := range []struct {
		args []string
		want string
	}{
		{append([]string{"data", "check"}, featureFiles(t, 50, 49, -1)...), "text.npy has 49"},
		{append([]string{"data", "stats", "--split", "test"}, clean...), "the test split is empty"},
		{append(append([]string{"data", "check"}, clean...), "--set", "data.pairs.text=none.npy"), "relative paths start from data.root"},
	} {
		code, _, stderr := trainer(t, r.args...)
		if code != exitFailed || !strings.Contains(stderr, r.want) {
			t.Errorf("%q: code %d, stderr %q, want %q", r.args[:2], code, stderr, r.want)
		}
	}
	fails(t, exitUsage, append([]string{"data", "preview"}, clean...), `data.kind "pairs" has no images to draw`)
	fails(t, exitUsage, append([]string{"data", "preview", "--split", "val"}, clean...), `data.kind "pairs" has no images to draw`)
	fails(t, exitUsage, append(append([]string{"data", "bench"}, clean...), "--set", "model.heads.in_image=7"), "model.heads.in_image: must be 6, the width of ")
}
