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
	"strings"
	"testing"
)

// oldRun is a run folder of an earlier revision in testdata/oldruns, with what that
// revision's program made of it in expected.json.
type oldRun struct {
	name  string
	data  bool     // the run reads a folder of images, which classImages makes
	tuned bool     // finetune takes it
	more  []string // flags of every command
}

var oldRuns = []oldRun{
	{name: "quickstart-v0", tuned: true},
	{name: "geoalign-v0", tuned: true},
	{name: "geomm-moco-v0", data: true},
}

// oldNumbers is the content of expected.json.
type oldNumbers struct {
	Eval     map[string]any     `json:"eval"`     // of trainer eval --json
	Embed    map[string]any     `json:"embed"`    // of trainer embed --json
	Resumed  map[string]float64 `json:"resumed"`  // losses of the last row after 20 further steps
	Finetune map[string]any     `json:"finetune"` // of trainer finetune --json
}

// Runs of earlier revisions are evaluated, embedded, gone on with, fine-tuned and
// reported on as by the revision that made them.
func TestOldRuns(t *testing.T) {
	for _, r := range oldRuns {
		t.Run(r.name, func(t *testing.T) {
			from := filepath.Join("testdata", "oldruns", r.name)
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "expected.json")); err != nil {
				t.Fatal(err)
			}
			if r.data {
				r.more = []string{"--set", "data.root=" + classImages(t)}
			}
			var want oldNumbers
			text, err := os.ReadFile(filepath.Join(from, "expected.json"))
			if err == nil {
				err = json.Unmarshal(text, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			before := tensorFiles(t, dir)
			r.infer(t, dir, want)
			for g, b := range tensorFiles(t, dir) {
				if !bytes.Equal(b, before[g]) {
					t.Errorf("%s of the checkpoint changed by commands that only read", g)
				}
			}
			if r.tuned {
				r.finetune(t, dir, want)
			}
			r.resume(t, dir, want)
		})
	}
}

func (r oldRun) infer(t *testing.T, dir string, want oldNumbers) {
	stdout, _ := must(t, exitDone, append([]string{"eval", "--checkpoint", dir, "--json"}, r.more...)...)
	sameNumbers(t, "eval", parseJSON(t, stdout), want.Eval, 1e-3)
	out := filepath.Join(t.TempDir(), "embeddings")
	stdout, _ = must(t, exitDone, append([]string{"embed", "--checkpoint", dir, "--out", out, "--json"}, r.more...)...)
	sameNumbers(t, "embed", parseJSON(t, stdout), want.Embed, 0)
	page := filepath.Join(t.TempDir(), "page.html")
	must(t, exitDone, append([]string{"report", dir, "--quiet", "--out", page}, r.more...)...)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("model.image.width")) || !bytes.Contains(text, []byte("<h2>Embedding</h2>")) {
		t.Error("the report lacks settings or features")
	}
	stdout, _ = must(t, exitDone, "inspect", dir)
	contains(t, stdout, "600")
}

// finetune makes some steps of a new run from the parameters of the old one.
func (r oldRun) finetune(t *testing.T, dir string, want oldNumbers) {
	out := filepath.Join(t.TempDir(), "tuned")
	stdout, _ := must(t, exitDone, append([]string{"finetune", "--checkpoint", dir, "--out", out, "--max-steps", "10", "--json"}, r.more...)...)
	sameNumbers(t, "finetune", parseJSON(t, stdout), want.Finetune, 1e-3)
}

// resume goes on with the run, of which nothing has changed but its length and the
// place of its data.
func (r oldRun) resume(t *testing.T, dir string, want oldNumbers) {
	config := filepath.Join(filepath.Dir(dir), "own.toml")
	text, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err == nil {
		err = os.WriteFile(config, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, stderr := must(t, exitDone, append([]string{"train", "--config", config, "--out", dir, "--max-steps", "620"}, r.more...)...)
	contains(t, stderr, "going on from step 600")
	for line := range strings.Lines(stderr) {
		if key, ok := strings.CutPrefix(line, "changed since the checkpoint: "); ok && !strings.HasPrefix(key, "train.max_steps = ") && !strings.HasPrefix(key, "data.root = ") {
			t.Errorf("%s", line)
		}
	}
	last := rows(t, dir)[len(rows(t, dir))-1]
	if last.Step != 620 {
		t.Fatalf("the last row is of step %d", last.Step)
	}
	for k, v := range want.Resumed {
		if got := last.Values[k]; !(math.Abs(got-v) <= 1e-2*math.Max(1, math.Abs(v))) {
			t.Errorf("after 20 further steps %s is %v, was %v", k, got, v)
		}
	}
}

// sameNumbers fails unless got has every value of want, numbers to a tolerance.
func sameNumbers(t *testing.T, where string, got, want map[string]any, tolerance float64) {
	t.Helper()
	for k, w := range want {
		g := got[k]
		switch w := w.(type) {
		case map[string]any:
			sub, _ := g.(map[string]any)
			sameNumbers(t, where+" "+k, sub, w, tolerance)
		case float64:
			if x, ok := g.(float64); !ok || math.Abs(x-w) > tolerance {
				t.Errorf("%s: %s is %v, was %v", where, k, g, w)
			}
		default:
			if g != w {
				t.Errorf("%s: %s is %v, was %v", where, k, g, w)
			}
		}
	}
}

// classImages makes a folder of two classes of pictures, stripes and checks in many
// colours: 20 of each class to train on, 10 to validate and 10 to test.
func classImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for split, n := range map[string]int{"train": 20, "val": 10, "test": 10} {
		for _, class := range []string{"stripes", "checks"} {
			folder := filepath.Join(dir, split, class)
			if err := os.MkdirAll(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d.png", i)), pattern(class, split, i), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return dir
}

// pattern draws picture i of a class.
func pattern(class, split string, i int) []byte {
	const size = 24
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	hue := uint8(37*i + 11*len(split))
	a, b := color.RGBA{hue, 255 - hue, 3 * hue, 255}, color.RGBA{5 * hue, hue / 2, 255 - 2*hue, 255}
	for y := range size {
		for x := range size {
			c := a
			if (x/(2+i%3)+y/4)%2 == 0 && class == "checks" || (x+i)/3%2 == 0 && class == "stripes" {
				c = b
			}
			m.SetRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		panic(err)
	}
	return out.Bytes()
}
