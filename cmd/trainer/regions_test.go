package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/internal/check"
)

// TestRegions: the grid of a tower is written, and every command that looks at data reads it. With pictures, boxes
// are drawn.
func TestRegions(t *testing.T) {
	dir := t.TempDir()
	ck, out := filepath.Join(dir, "run"), filepath.Join(dir, "regions")
	scenes := []string{"--set", "data.scenes.val_samples=12", "--set", "data.scenes.test_samples=15"}
	must(t, exitDone, append(append(append([]string{"train"}, smallModel...), scenes...), "--max-steps", "1", "--out", ck, "--quiet", "--set", "train.eval_every_steps=0")...)
	for split, n := range map[string]float64{"val": 12, "test": 15} {
		stdout, _ := must(t, exitDone, "regions", "--checkpoint", ck, "--split", split, "--grid", "1", "--out", out, "--json")
		if m := parseJSON(t, stdout); m["images"] != n || m["regions"] != 1.0 || m["width"] != 16.0 || m["captions"] != 1.0 || m["left_out"] != 0.0 {
			t.Errorf("%s: %s", split, stdout)
		}
	}
	stdout, _ := must(t, exitDone, "regions", "--checkpoint", ck, "--split", "test", "--out", out)
	contains(t, stdout, "regions of 15 images: 4 of 16 channels for each, 1 caption each, in "+out)
	f, err := regions.OpenFeatures(filepath.Join(out, "test_ims.npy"), "", filepath.Join(out, "test_boxes.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, boxes := make([]float32, 4*16), make([]float32, 4*4)
	if n, err := f.Read(3, x, boxes); err != nil || n != 4 || f.Len() != 15 {
		t.Errorf("%d regions of %d images, %v", n, f.Len(), err)
	}
	if want := [16]float32{0, 0, .5, .5, .5, 0, 1, .5, 0, .5, .5, 1, .5, .5, 1, 1}; [16]float32(boxes) != want {
		t.Errorf("boxes %v, want %v", boxes, want)
	}

	set := append(append([]string{}, smallModel...), "--set", "data.kind=regions", "--set", "data.root="+out, "--set", "data.regions.train=test", "--set", "data.regions.val=dev", "--set", "data.regions.test=",
		"--set", "data.regions.boxes={split}_boxes.npy", "--set", "data.clean=none")
	stdout, _ = must(t, exitDone, append([]string{"data", "check"}, set...)...)
	contains(t, stdout, "train: 15 images")
	stdout, _ = must(t, exitDone, append([]string{"data", "stats", "--json"}, set...)...)
	m := parseJSON(t, stdout)
	train := m["splits"].([]any)[0].(map[string]any)
	r := train["regions"].(map[string]any)
	if r["width"] != 16.0 || r["most"] != 4.0 || r["boxes"] != true || r["images_looked_at"] != 15.0 || r["regions_per_image"].(map[string]any)["min"] != 4.0 || m["tokenizer"].(map[string]any)["kind"] != "WordLevel" {
		t.Errorf("stats %s", stdout)
	}
	stdout, _ = must(t, exitDone, append([]string{"data", "stats"}, set...)...)
	contains(t, stdout, "4 x 16")
	stdout, _ = must(t, exitDone, append([]string{"data", "preview", "--images", "2"}, set...)...)
	contains(t, stdout, "test_ims.npy row 0")
	if strings.Contains(stdout, "row 2") {
		t.Errorf("more than two images:\n%s", stdout)
	}
	stdout, _ = must(t, exitDone, append([]string{"data", "bench", "--seconds", "0.01", "--workers", "1", "--json"}, set...)...)
	if parseJSON(t, stdout)["kind"] != "regions" {
		t.Errorf("bench %s", stdout)
	}
	// A tower of pixels finds no pictures to read.
	fails(t, exitFailed, append([]string{"train", "--out", filepath.Join(dir, "none"), "--max-steps", "1"}, append(set, "--set", "model.system=clip", "--set", "model.text.fusion_layers=0", "--set", "objective.itm.weight=0", "--set", "objective.mlm.weight=0", "--set", "eval.rerank_top=0")...), "reads the column images (3, 32, 32) float32, which the data does not give")

	sheet := filepath.Join(dir, "sheet.png")
	must(t, exitDone, append(append([]string{"data", "preview", "--split", "val", "--out", sheet, "--images", "3", "--set", "data.kind=regions", "--set", "data.regions.source=scenes"}, smallModel...), scenes...)...)
	file := check.Get(os.Open(sheet))(t)
	defer file.Close()
	if _, err := png.Decode(file); err != nil {
		t.Error(err)
	}

	fails(t, exitUsage, []string{"regions", "--checkpoint", ck, "--grid", "3"}, "--grid must be from 1 to 2")
	fails(t, exitUsage, []string{"regions", "--checkpoint", ck, "--captions", "2", "--split", "test", "--out", out}, "--captions must be at most 1 caption")
	fails(t, exitUsage, []string{"regions", "--checkpoint", ck, "--split", "train"}, "the train split of the scenes is endless")
	fails(t, exitUsage, []string{"regions"}, "init.image.path: must name the weights of an image tower")
}
