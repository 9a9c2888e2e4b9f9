package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestGrounding: a model of scenes is fine-tuned on referring expressions, with what is found in log, table, JSON,
// results and page; and any model with a match head is evaluated.
func TestGrounding(t *testing.T) {
	dir := t.TempDir()
	base, tuned := filepath.Join(dir, "base"), filepath.Join(dir, "tuned")
	must(t, exitDone, tinyArgs(base, "--max-steps", "2", "--quiet")...)
	stdout, stderr := must(t, exitDone, "finetune", "--checkpoint", base, "--task", "grounding", "--max-steps", "2", "--out", tuned)
	contains(t, stderr, "finetune: ", "step 2/2", "itm ", "grounding by fusion layer 1: IoU >= .5 ")
	contains(t, stdout, "grounding on val: ", "expressions  IoU >= .5  chance  reachable", "place  ")
	text := check.Get(os.ReadFile(filepath.Join(tuned, "config.toml")))(t)
	contains(t, string(text), `positives = "id"`, `kind = "grounding"`, `source = "scenes"`, "crop_scale_min = 1.0")
	log := check.Get(os.ReadFile(filepath.Join(tuned, "metrics.jsonl")))(t)
	contains(t, string(log), `"eval/grounding/accuracy":`, `"eval/grounding/pointing/look":`)

	out, results := filepath.Join(dir, "page.html"), filepath.Join(dir, "found.json")
	stdout, _ = must(t, exitDone, "eval", "--checkpoint", tuned, "--set", "eval.max_images=10", "--json", "--out", out, "--results", results)
	m := parseJSON(t, stdout)
	all := m["all"].(map[string]any)
	if m["task"] != "grounding" || m["map"] != "fusion layer 1" || all["expressions"] != 10.0 || all["reachable"] != 100.0 || len(m["kinds"].([]any)) != 2 {
		t.Errorf("%v", m)
	}
	if v := all["chance"].(float64); v < 5 || v > 20 {
		t.Errorf("a random box is right in %v %%", v)
	}
	page := check.Get(os.ReadFile(out))(t)
	contains(t, string(page), "Visual grounding on val", "random box, %", "its heat map", `class="asked"`)
	found := check.Get(os.ReadFile(results))(t)
	contains(t, string(found), `"target":[`, `"iou":`)
	if n := strings.Count(string(found), `"id":"`); n != 10 {
		t.Errorf("%d results", n)
	}

	stdout, _ = must(t, exitDone, "eval", "--checkpoint", base, "--task", "grounding", "--set", "eval.max_images=10", "--set", "eval.grounding.mode=itc", "--set", "eval.grounding.layer=1")
	contains(t, stdout, "grounding on val: 10 expressions", "heat maps of image block 1")
	again, _ := must(t, exitDone, "eval", "--checkpoint", base, "--task", "grounding", "--set", "eval.max_images=10", "--set", "eval.grounding.mode=itc", "--set", "eval.grounding.layer=1", "--set", "eval.batch_size=3")
	if again != stdout {
		t.Errorf("batches of three say\n%s\nothers\n%s", again, stdout)
	}
	fails(t, exitUsage, []string{"eval", "--checkpoint", base, "--task", "grounding", "--set", "eval.grounding.layer=9"}, "eval.grounding", "there is no fusion layer 8")
	fails(t, exitUsage, []string{"eval", "--checkpoint", tuned, "--set", "eval.grounding.layer=9"}, "eval.grounding.layer: must be at most model.text.fusion_layers")
}

// TestGroundingFiles: expressions about pictures in files, with boxes of their own and without.
func TestGroundingFiles(t *testing.T) {
	dir := t.TempDir()
	base, files := filepath.Join(dir, "base"), filepath.Join(dir, "files")
	must(t, exitDone, tinyArgs(base, "--max-steps", "2", "--quiet")...)
	check.OK(t, os.Mkdir(files, 0o755))
	var train, val []string
	for i := range 20 {
		m := image.NewGray(image.Rect(0, 0, 30+i, 20))
		for k := range m.Pix {
			m.Pix[k] = byte(k * (i + 3))
		}
		var b bytes.Buffer
		check.OK(t, png.Encode(&b, m))
		check.OK(t, os.WriteFile(filepath.Join(files, fmt.Sprintf("%d.png", i)), b.Bytes(), 0o644))
		switch row := fmt.Sprintf(`{"image": "%d.png", "text": "the red circle number %d"`, i, i); {
		case i < 10:
			train = append(train, row+"}")
		case i == 10:
			val = append(val, row+`, "bbox": [5, 5, 10, 10]}`)
		default:
			val = append(val, row+`, "bbox": [5, 5, 10, 10], "proposals": [[5, 5, 10, 9], [20, 10, 10, 10]]}`)
		}
	}
	val = append(val, `{"image": "13.png", "text": "the circle", "bbox": [50, 5, 10, 10], "proposals": [[0, 0, 5, 5]]}`, `{"image": "14.png", "text": "the circle"}`)
	for name, rows := range map[string][]string{"train.json": train, "val.json": val} {
		check.OK(t, os.WriteFile(filepath.Join(files, name), []byte("["+strings.Join(rows, ",")+"]"), 0o644))
	}
	flags := []string{"--set", "data.root=" + files, "--set", "data.examples.source=files", "--set", `data.examples.train_files=["train.json"]`, "--set", `data.examples.val_files=["val.json"]`}
	tuned := filepath.Join(dir, "tuned")
	stdout, _ := must(t, exitDone, append([]string{"finetune", "--checkpoint", base, "--task", "grounding", "--max-steps", "2", "--out", tuned}, flags...)...)
	contains(t, stdout, "grounding on val: 10 expressions", "1 looked for in sliding boxes", "1 with a target outside of the picture: left out")
	out := filepath.Join(dir, "page.html")
	must(t, exitDone, "eval", "--checkpoint", tuned, "--out", out)
	if page, err := os.ReadFile(out); err != nil || strings.Count(string(page), "<img ") != 20 {
		t.Errorf("%d pictures, %v", strings.Count(string(page), "<img "), err)
	}
	for _, command := range []string{"check", "stats"} {
		stdout, _ = must(t, exitDone, "data", command, "--config", filepath.Join(tuned, "config.toml"))
		contains(t, stdout, "train", "10")
	}
	must(t, exitDone, "data", "preview", "--config", filepath.Join(tuned, "config.toml"), "--out", filepath.Join(dir, "preview.png"))
}
