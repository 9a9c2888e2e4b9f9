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

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

// oldRun is a run folder of an earlier revision in testdata/oldruns, with what that
// revision's program made of it in expected.json.
type oldRun struct {
	name  string
	steps int
	data  func(t *testing.T) string // makes the folder that the run reads
	tuned bool                      // finetune takes it
	more  []string                  // flags of every command
	law   []string                  // flags that name what the run did before there were keys for it
}

var oldRuns = []oldRun{
	{name: "quickstart-v0", steps: 600, tuned: true, law: oldNegatives},
	{name: "geoalign-v0", steps: 600, tuned: true, law: oldNegatives},
	{name: "clip-v0", steps: 600, tuned: true},
	{name: "geomm-moco-v0", steps: 600, data: patternImages},
	{name: "geomm-swav-v0", steps: 600, data: patternImages},
	{name: "entailment-v2", steps: 300},
	{name: "nlvr-v2", steps: 300},
	{name: "vqa-v2", steps: 300},
	{name: "captioning-v2", steps: 300},
	{name: "sgraf-v2", steps: 300},
	{name: "gera-v2", steps: 300, data: func(t *testing.T) string { return featuresFolder(t, 200, 12) }},
	{name: "simcse-v2", steps: 300},
	{name: "lora-v2", steps: 300},
	{name: "vipmm-v2", steps: 300},
	{name: "reid-v2", steps: 300},
}

// oldNegatives is how hard negatives were drawn before objective.itm.negative_floor. A user's
// file that lacks the key has today's default; the file of a run has this.
var oldNegatives = []string{"--set", "objective.itm.negative_floor=1e-4"}

// oldNumbers is the content of expected.json.
type oldNumbers struct {
	Eval     map[string]any     `json:"eval"`     // of trainer eval --json
	Embed    map[string]any     `json:"embed"`    // of trainer embed --json, which refuses models without vectors
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
			check.OK(t, os.CopyFS(dir, os.DirFS(from)))
			check.OK(t, os.Remove(filepath.Join(dir, "expected.json")))
			if r.data != nil {
				r.more = []string{"--set", "data.root=" + r.data(t)}
			}
			var want oldNumbers
			text, err := os.ReadFile(filepath.Join(from, "expected.json"))
			if err == nil {
				err = json.Unmarshal(text, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			r.infer(t, dir, want)
			if now := listing(t, dir); now != before {
				t.Errorf("commands that only read changed the folder from\n%s\nto\n%s", before, now)
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
	if want.Embed != nil {
		out := filepath.Join(t.TempDir(), "embeddings")
		stdout, _ = must(t, exitDone, append([]string{"embed", "--checkpoint", dir, "--out", out, "--json"}, r.more...)...)
		sameNumbers(t, "embed", parseJSON(t, stdout), want.Embed, 0)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	must(t, exitDone, append([]string{"report", dir, "--quiet", "--out", page}, r.more...)...)
	text := check.Get(os.ReadFile(page))(t)
	if !bytes.Contains(text, []byte("model.head.dim")) || bytes.Contains(text, []byte("<h2>Embedding</h2>")) != (want.Embed != nil) {
		t.Error("the report lacks settings or features")
	}
	stdout, _ = must(t, exitDone, "inspect", dir)
	contains(t, stdout, fmt.Sprint(r.steps))
}

// TestRerankScore: a stored run re-ranks by the sum of both scores otherwise than by the matching head alone.
func TestRerankScore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	check.OK(t, os.CopyFS(dir, os.DirFS("testdata/oldruns/quickstart-v0")))
	eval := func(score string) string {
		out, _ := must(t, exitDone, "eval", dir, "--json", "--set", "eval.rerank_top=8", "--set", "eval.rerank_score="+score)
		return out
	}
	if match, sum := eval("match"), eval("sum"); match == sum {
		t.Errorf("both give %s", match)
	}
}

// finetune makes some steps of a new run from the parameters of the old one.
func (r oldRun) finetune(t *testing.T, dir string, want oldNumbers) {
	out := filepath.Join(t.TempDir(), "tuned")
	stdout, _ := must(t, exitDone, append([]string{"finetune", "--checkpoint", dir, "--out", out, "--max-steps", "10", "--json"}, r.more...)...)
	sameNumbers(t, "finetune", parseJSON(t, stdout), want.Finetune, 1e-3)
}

// resume goes on with the run, of which nothing has changed but its length, the
// place of its data and, on another processor, its kernels.
func (r oldRun) resume(t *testing.T, dir string, want oldNumbers) {
	config := filepath.Join(filepath.Dir(dir), "own.toml")
	text, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err == nil {
		err = os.WriteFile(config, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	end := r.steps + 20
	_, stderr := must(t, exitDone, append([]string{"train", "--config", config, "--out", dir, "--max-steps", fmt.Sprint(end)}, slices.Concat(r.law, r.more)...)...)
	contains(t, stderr, fmt.Sprintf("going on from step %d", r.steps))
	for line := range strings.Lines(stderr) {
		if key, ok := strings.CutPrefix(line, "changed since the checkpoint: "); ok && !expectedChange(key) {
			t.Errorf("%s", line)
		}
	}
	last := rows(t, dir)[len(rows(t, dir))-1]
	if last.Step != end {
		t.Fatalf("the last row is of step %d", last.Step)
	}
	for k, v := range want.Resumed {
		if got := last.Values[k]; !(math.Abs(got-v) <= 1e-2*math.Max(1, math.Abs(v))) {
			t.Errorf("after 20 further steps %s is %v, was %v", k, got, v)
		}
	}
}

// expectedChange says whether a test itself, or the machine that it runs on, makes a change
// of which resuming tells.
func expectedChange(line string) bool {
	for _, of := range []string{"train.max_steps = ", "data.root = ", "kernels = "} {
		if strings.HasPrefix(line, of) {
			return true
		}
	}
	return false
}

// sameNumbers fails unless got has every value of want, numbers to a tolerance.
func sameNumbers(t *testing.T, where string, got, want any, tolerance float64) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k := range w {
			sameNumbers(t, where+" "+k, g[k], w[k], tolerance)
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			t.Errorf("%s: %v, was %v", where, got, want)
			return
		}
		for i := range w {
			sameNumbers(t, fmt.Sprintf("%s %d", where, i), g[i], w[i], tolerance)
		}
	case float64:
		if g, ok := got.(float64); !ok || !(math.Abs(g-w) <= tolerance) {
			t.Errorf("%s is %v, was %v", where, got, want)
		}
	default:
		if got != want {
			t.Errorf("%s is %v, was %v", where, got, want)
		}
	}
}

// patternImages makes a folder of two classes of pictures, stripes and checks in many
// colours: 20 of each class to train on, 10 to validate and 10 to test.
func patternImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for split, n := range map[string]int{"train": 20, "val": 10, "test": 10} {
		for _, class := range []string{"stripes", "checks"} {
			folder := filepath.Join(dir, split, class)
			check.OK(t, os.MkdirAll(folder, 0o777))
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

// storedRun is a copy of the old quickstart run whose configurations, that of the run and
// that of its checkpoint, went through change.
func storedRun(t *testing.T, change func(text string) string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	check.OK(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "oldruns", "quickstart-v0"))))
	step := filepath.Join(dir, "checkpoints", checkpointName(600))
	for _, folder := range []string{dir, step} {
		text := check.Get(os.ReadFile(filepath.Join(folder, "config.toml")))(t)
		edited := change(string(text))
		check.OK(t, os.WriteFile(filepath.Join(folder, "config.toml"), []byte(edited), 0o666))
		if folder == dir {
			continue
		}
		checkpointtest.Reseal(t, step)
	}
	return dir
}

// A run of a later version is refused by every command, and nothing of it is touched.
func TestRunOfALaterVersion(t *testing.T) {
	dir := storedRun(t, func(text string) string { return fmt.Sprintf("version = %d\nspeed = 5\n", config.Version+1) + text })
	own := write(t, "own.toml", "base = \"scenes.toml\"\n")
	scenes, err := os.ReadFile("../../configs/scenes.toml")
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(own), "scenes.toml"), scenes, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	for _, args := range [][]string{
		{"eval", "--checkpoint", dir},
		{"embed", "--checkpoint", dir, "--out", filepath.Join(t.TempDir(), "e")},
		{"finetune", "--checkpoint", dir, "--out", filepath.Join(t.TempDir(), "f")},
		{"report", dir},
		{"train", "--config", own, "--out", dir},
	} {
		fails(t, exitUsage, args, fmt.Sprintf("config.toml:1: version: made by a newer version of geoalign (configuration version %d, this one reads up to %d)",
			config.Version+1, config.Version), "the run folder is untouched")
	}
	if now := listing(t, dir); now != before {
		t.Errorf("the folder changed from\n%s\nto\n%s", before, now)
	}
}

// listing is the names and sizes of the files of a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	check.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintf(&list, "%s %d %s\n", path, info.Size(), info.ModTime())
		}
		return err
	}))
	return list.String()
}

// Keys of a stored configuration that are unknown and values that a check refuses are told
// and keep no command that reads from its work; to train with them they must be mended.
func TestStoredProblemsAreTold(t *testing.T) {
	dir := storedRun(t, func(text string) string {
		return strings.Replace(strings.Replace(text, "batch_size = 16", "batch_size = 1", 1), "[train]\n", "[train]\nspeed = 5\n", 1)
	})
	notes := []string{"train.speed: is unknown to this version and is not read", "train.batch_size: must be >= 2 (got 1)", "kept, as the run was made with it"}
	var want oldNumbers
	text, err := os.ReadFile(filepath.Join("testdata", "oldruns", "quickstart-v0", "expected.json"))
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := must(t, exitDone, "eval", "--checkpoint", dir, "--json")
	contains(t, stderr, notes...)
	sameNumbers(t, "eval", parseJSON(t, stdout), want.Eval, 1e-3)
	_, stderr = must(t, exitDone, "embed", "--checkpoint", dir, "--out", filepath.Join(t.TempDir(), "e"), "--quiet")
	if stderr != "" {
		t.Errorf("--quiet: %q", stderr)
	}
	must(t, exitDone, "report", dir, "--quiet", "--out", filepath.Join(t.TempDir(), "page.html"))
	out := filepath.Join(t.TempDir(), "tuned")
	fails(t, exitUsage, []string{"finetune", "--checkpoint", dir, "--out", out, "--max-steps", "2"}, append(notes, "trainer: the configuration has 1 problem")...)
	must(t, exitDone, "finetune", "--checkpoint", dir, "--out", out, "--max-steps", "2", "--set", "train.batch_size=8", "--quiet")
	_, stderr = must(t, exitDone, "train", "--config", oldConfig(t, 8), "--out", dir, "--max-steps", "602")
	contains(t, stderr, "note: ", "data.train_files is data.captions.train_files since configuration version 2", "changed since the checkpoint: train.batch_size = 8 (was 1)")
}

// oldConfig is the configuration of the old quickstart run with another batch size.
func oldConfig(t *testing.T, batch int) string {
	t.Helper()
	text := check.Get(os.ReadFile(filepath.Join("testdata", "oldruns", "quickstart-v0", "config.toml")))(t)
	return write(t, "own.toml", strings.Replace(string(text), "batch_size = 16", fmt.Sprintf("batch_size = %d", batch), 1))
}
