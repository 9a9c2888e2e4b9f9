package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// reidArgs train by identities for some steps at a small size.
func reidArgs(out string, more ...string) []string {
	args := []string{"train", "--config", "../../configs/reid.toml", "--out", out}
	args = append(args, sets(append([]string{"train.max_steps=12", "train.eval_every_steps=6", "train.log_every_steps=2", "schedule.warmup_steps=2", "model.image.size=16", "model.image.width=16", "model.image.depth=1",
		"train.batch_size=12", "data.identities.images=3", "compute.threads=2"}, more...)...)...)
	return args
}

// TestReIDScenes: a run by identities is evaluated by its search, which keep_best, metrics.jsonl, report, inspect and
// --json know, and resumes at the same place.
func TestReIDScenes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, reidArgs(out, "data.scenes.epoch_samples=600", "data.scenes.val_samples=60", "objective.itc.score=gssf", "objective.gssf.form=diag")...)
	log := check.Get(os.ReadFile(filepath.Join(out, "metrics.jsonl")))(t)
	for _, want := range []string{`"eval/reid/map"`, `"eval/reid/r1"`, `"eval/reid/minp"`, `"triplet_anchors"`, `"softmax_accuracy"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("metrics.jsonl has no %s", want)
		}
	}
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", out, "--json")
	var r struct {
		Task, Metric, Score string
		Queries, Unmatched  int
		Gallery             int
		Found               map[string]float64
	}
	check.OK(t, json.Unmarshal([]byte(stdout), &r))
	if r.Task != "reid" || r.Metric != "eval/reid/map" || r.Score != "gssf" || r.Queries+r.Unmatched != 60 || r.Gallery != 60 || r.Found["r100"] != 100 {
		t.Errorf("got %s", stdout)
	}
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", out, "--task", "reid")
	if !strings.Contains(stdout, "mAP") || !strings.Contains(stdout, "chance") {
		t.Errorf("got %s", stdout)
	}
	stdout, _ = must(t, exitDone, "inspect", out)
	if !strings.Contains(stdout, "eval/reid/map") {
		t.Errorf("inspect says %s", stdout)
	}
	must(t, exitDone, "report", out)

	// What is embedded is searched by the score of the evaluation: features of the head, those of the gallery under the metric.
	folder := filepath.Join(t.TempDir(), "gallery")
	must(t, exitDone, "embed", "--checkpoint", out, "--split", "val", "--out", folder)
	f := check.Get(safetensors.Open(filepath.Join(folder, "features.safetensors")))(t)
	defer f.Close()
	folded, own := check.Get(f.Float32("image"))(t), check.Get(f.Float32("image_features"))(t)
	width, best, at := len(own)/60, math.Inf(-1), 0
	for j := range 60 {
		score := 0.
		for c := range width {
			score += float64(own[3*width+c]) * float64(folded[j*width+c])
		}
		if j != 3 && score > best {
			best, at = score, j
		}
	}
	_, _, found := hits(t, folder, "--row", "3", "--k", "1")
	if hit := found.Queries[0][0]; hit.Row != at || math.Abs(float64(hit.Score)-best) > 1e-6 || slices.Equal(own, folded) {
		t.Errorf("row 3 finds %+v, want row %d with %v", hit, at, best)
	}
	must(t, exitDone, "eval", "--checkpoint", out, "--task", "probe", "--set", "eval.probe_samples=60")
	fails(t, exitUsage, []string{"eval", "--checkpoint", out, "--task", "retrieval"}, "needs a model of images and texts")
	fails(t, exitUsage, reidArgs(out+"2", "objective.softmax.classes=63"), "objective.softmax.classes: must be at least 64, the identities of the training data (got 63)")
}

// TestReIDTable: a list with identities, cameras and roles is trained on and searched; check and stats know it.
func TestReIDTable(t *testing.T) {
	dir := t.TempDir()
	train, test := "image,person,camera,role\n", "image,person,camera,role\n"
	for i := range 30 {
		img := image.NewRGBA(image.Rect(0, 0, 16, 16))
		for p := range 256 {
			img.Set(p%16, p/16, color.RGBA{uint8(40 * (i % 5)), uint8(200 - 30*(i%5)), uint8(p + i), 255})
		}
		name := fmt.Sprintf("%04d_c%d_%d.png", i%5, i%3, i)
		writePNG(t, filepath.Join(dir, name), img)
		switch {
		case i < 22:
			train += fmt.Sprintf("%s,%04d,c%d,\n", name, i%5, i%3)
		default:
			test += fmt.Sprintf("%s,%04d,c%d,%s\n", name, i%5, i%3, []string{"gallery", "query"}[i%2])
		}
	}
	for name, text := range map[string]string{"train.csv": train, "test.csv": test} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	sets := []string{"data.kind=csv", "data.root=" + dir, `data.csv.train_files=["` + dir + `/train.csv"]`, `data.csv.test_files=["` + dir + `/test.csv"]`, "data.csv.image=image", "data.csv.caption=", "data.csv.id=person",
		"data.csv.camera=camera", "data.csv.role=role", "eval.split=test", "data.identities.images=6", "data.identities.short=repeat", "objective.softmax.classes=5"}
	out := filepath.Join(dir, "run")
	_, stderr := must(t, exitDone, reidArgs(out, sets...)...)
	if !strings.Contains(stderr, "identities of the training data with fewer than 6 images: 5 of 5, and their images are drawn again") {
		t.Errorf("short identities are not told:\n%s", stderr)
	}
	stdout, _ := must(t, exitDone, "eval", "--checkpoint", out, "--json")
	if !strings.Contains(stdout, `"gallery": 4`) {
		t.Errorf("got %s", stdout)
	}
	args := []string{"data", "stats", "--config", "../../configs/reid.toml", "--split", "test"}
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	stdout, _ = must(t, exitDone, args...)
	if !strings.Contains(stdout, "queries, gallery") || !strings.Contains(stdout, "4, 4") {
		t.Errorf("got %s", stdout)
	}
}

// writePNG writes a picture.
func writePNG(t *testing.T, path string, img image.Image) {
	t.Helper()
	var b bytes.Buffer
	check.OK(t, png.Encode(&b, img))
	check.OK(t, os.WriteFile(path, b.Bytes(), 0o644))
}
