package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/ablate"
)

// matrix writes a matrix file over the tiny configuration, whose runs have three steps
// without an evaluation but the last.
func matrix(t *testing.T, text string) string {
	t.Helper()
	base := check.Get(filepath.Abs(tiny))(t)
	return write(t, "matrix.toml", fmt.Sprintf(`
base = %q
seeds = [1, 2]
set = ["train.max_steps=3", "train.eval_every_steps=0", "train.log_every_steps=1"]
metrics = ["eval/retrieval/rsum", "loss"]
`, base)+text)
}

// three is a shared start, a run that goes on from it, and one that changes something.
const three = `
baseline = "plain"
[[run]]
name = "plain"
start = "warm"
[[run]]
name = "warm"
hidden = true
[[run]]
name = "no distillation"
start = "warm"
set = ["objective.distill.alpha=0"]
`

// readResults reads results.json.
func readResults(t *testing.T, dir string) (r ablation.Results) {
	t.Helper()
	text := check.Get(os.ReadFile(filepath.Join(dir, ablate.ResultsFile)))(t)
	check.OK(t, json.Unmarshal(text, &r))
	return r
}

// lastValue is a metric of the last row of a run that has it.
func lastValue(t *testing.T, dir, metric string) float64 {
	t.Helper()
	v := math.NaN()
	for _, r := range rows(t, dir) {
		if x, ok := r.Values[metric]; ok {
			v = x
		}
	}
	return v
}

// The table's numbers are computed from the run folders by hand.
func TestAblate(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"ablate", "--config", matrix(t, three), "--out", out}
	stdout, stderr := must(t, exitDone, args...)
	page := check.Get(os.ReadFile(filepath.Join(out, "report.html")))(t)
	contains(t, string(page), "<dt>runs done</dt><dd>6 of 6</dd>", "In small type: difference to", "Bold on green")
	contains(t, stderr, "=== run 1 of 6: warm, seed 1", "=== run 6 of 6: no distillation, seed 2 (about", "parameters from "+filepath.Join(out, "warm", "seed-2", "checkpoints"), "results.json and report.html are in "+out)
	r := readResults(t, out)
	if !r.Complete || len(r.Tables) != 1 || len(r.Tables[0].Lines) != 2 || len(r.Rows) != 3 {
		t.Fatalf("%+v", r)
	}
	for j, metric := range []string{"eval/retrieval/rsum", "loss"} {
		values := map[string][]float64{}
		for i, name := range []string{"plain", "no distillation"} {
			for _, seed := range []string{"seed-1", "seed-2"} {
				values[name] = append(values[name], lastValue(t, filepath.Join(out, name, seed), metric))
			}
			v := values[name]
			mean, sd := (v[0]+v[1])/2, math.Abs(v[0]-v[1])/math.Sqrt2
			cell := r.Tables[0].Lines[i].Cells[j]
			if !(math.Abs(*cell.Mean-mean) <= 1e-12) || !(math.Abs(*cell.SD-sd) <= 1e-9) || math.IsNaN(mean) {
				t.Errorf("%s of %s: %v, %v, want %v, %v", metric, name, *cell.Mean, *cell.SD, mean, sd)
			}
			digits := 3 - 2*min(1, 1-j)
			contains(t, stdout, fmt.Sprintf("%.*f \u00b1 %.*f", digits, mean, digits, sd))
		}
		a, b := values["no distillation"], values["plain"]
		if d := *r.Tables[0].Lines[1].Cells[j].Difference; !(math.Abs(d-(a[0]+a[1]-b[0]-b[1])/2) <= 1e-12) {
			t.Errorf("difference of %s: %v", metric, d)
		}
	}
	if table, err := os.ReadFile(filepath.Join(out, ablate.TableFile)); err != nil || string(table) != stdout {
		t.Errorf("%s differs from stdout: %v", ablate.TableFile, err)
	}

	if names(t, out)[0] != "no distillation" || len(names(t, out)) != 7 {
		t.Errorf("%v", names(t, out))
	}

	// Again: nothing is trained, even without the checkpoints of what is done.
	check.OK(t, os.RemoveAll(filepath.Join(out, "plain", "seed-1", "checkpoints")))
	again, stderr := must(t, exitDone, args...)
	if again != stdout || strings.Contains(stderr, "===") {
		t.Errorf("%s\n%s", again, stderr)
	}
	text, _ := must(t, exitDone, append(args, "--json", "--quiet")...)
	if m := parseJSON(t, text); m["complete"] != true || len(m["runs"].([]any)) != 3 {
		t.Errorf("%s", text)
	}

	// A changed setting is refused, an operational one is not.
	stderr = fails(t, exitUsage, append(args, "--set", "optimizer.beta1=0.5"), "6 run folders do not belong to this matrix",
		filepath.Join(out, "warm", "seed-1")+": optimizer.beta1 = 0.5 (was 0.9)", "Remove them", "--out")
	if strings.Contains(stderr, "===") {
		t.Errorf("%s", stderr)
	}
	must(t, exitDone, append(args, "--set", "train.keep_last=1", "--quiet")...)

	// A start that is made anew makes what went on from it stale.
	check.OK(t, os.RemoveAll(filepath.Join(out, "warm", "seed-2")))
	fails(t, exitUsage, args, "2 run folders do not belong", filepath.Join(out, "plain", "seed-2")+": it started from")
	list, _ := must(t, exitDone, "ablate", "--config", args[2], "--out", t.TempDir(), "--dry-run", "--seeds", "3,", "--only", "plain")
	contains(t, list, "2 runs into", "2 to be made", "plain  (starts from warm)", "seeds: 3 missing", "objective.distill.alpha=0")
}

// An ablation that is interrupted anywhere ends with the same table.
func TestAblateGoesOn(t *testing.T) {
	dir := t.TempDir()
	file := matrix(t, three)
	short := []string{"--seeds", "2,", "--set", "train.max_steps=20"}
	whole, cut := filepath.Join(dir, "whole"), filepath.Join(dir, "cut")
	want, _ := must(t, exitDone, append([]string{"ablate", "--config", file, "--out", whole, "--quiet"}, short...)...)
	args := append([]string{"ablate", "--config", file, "--out", cut}, short...)
	for i, run := range []string{"warm", "plain"} {
		folder := filepath.Join(cut, run, "seed-2")
		if interrupted(t, folder, 2, args...) != exitInterrupted {
			t.Fatalf("%d: not interrupted", i)
		}
		if n := lastRow(folder); n == 20 {
			t.Logf("%s was done before the interruption came", run)
			continue
		}
		r := readResults(t, cut)
		if state := r.Rows[1-i].Trials[0].State; r.Complete || state != ablation.Stopped {
			t.Errorf("%d: %s is %s", i, run, state)
		}
	}
	got, stderr := must(t, exitDone, args...)
	contains(t, stderr, "of 3 runs are done already")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, errOut bytes.Buffer
	if code := execute(ctx, append([]string{"ablate", "--config", file, "--out", filepath.Join(dir, "none")}, short...), &stdout, &errOut); code != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("cancelled before the first run: %d %s %s", code, stdout.String(), errOut.String())
	}
}

// A run that fails is marked, what starts from it cannot run, and the others go on.
func TestAblateMarksFailures(t *testing.T) {
	dir := t.TempDir()
	file := matrix(t, `
[[run]]
name = "explodes"
set = ["optimizer.lr=1e30", "optimizer.clip_norm=0", "schedule.warmup_steps=1", "schedule.warmup_lr=0", "schedule.kind=constant"]
[[run]]
name = "after"
start = "explodes"
[[run]]
name = "fine"
[[sweep]]
key = "objective.mlm.prob"
values = [0.15, 0.3]
`)
	args := []string{"ablate", "--config", file, "--out", dir, "--seeds", "1"}
	stdout, stderr := must(t, exitFailed, args...)
	contains(t, stdout, "| failed", "Failed: explodes, seed 1: train: step", "Failed: after, seed 1: the run that it starts from failed: explodes", "## prob", `the same as "fine"`)
	contains(t, stderr, "2 of 4 runs failed", "explodes, seed 1; after, seed 1", "=== run 4 of 4: prob=0.3")
	r := readResults(t, dir)
	if a, b := r.Rows[2], r.Rows[3]; b.Same != "fine" || a.Trials[0].Values["loss"] != b.Trials[0].Values["loss"] || len(b.Trials[0].Values) != 2 {
		t.Errorf("%+v\n%+v", a, b)
	}
	// It would diverge again, so it is not tried again.
	again, stderr := must(t, exitFailed, args...)
	if again != stdout || strings.Contains(stderr, "run 1 of 4") {
		t.Errorf("%s\n%s", again, stderr)
	}
	_, stderr = must(t, exitFailed, append(args, "--retry")...)
	contains(t, stderr, "run 1 of 4: explodes")
}

// A run whose last step made what its evaluation finds to be no number would do so again, and is not tried again.
func TestAblateDivergedAtItsEnd(t *testing.T) {
	file := matrix(t, `
[[run]]
name = "explodes"
set = ["optimizer.lr=1e25", "optimizer.clip_norm=0", "schedule.warmup_steps=0", "schedule.kind=constant", "train.max_steps=1"]
`)
	args := []string{"ablate", "--config", file, "--out", t.TempDir(), "--seeds", "1"}
	first, stderr := must(t, exitFailed, args...)
	contains(t, first, "evaluation after step 1", "is NaN")
	contains(t, stderr, "run 1 of 1: explodes")
	again, stderr := must(t, exitFailed, args...)
	if again != first || strings.Contains(stderr, "run 1 of 1") {
		t.Errorf("%s\n%s", again, stderr)
	}
}

// A metric that nothing logs is told, with what there is.
func TestAblateWithoutTheMetric(t *testing.T) {
	file := write(t, "m.toml", strings.Replace(readText(t, matrix(t, "[[run]]\nname = \"a\"\n")), `"loss"]`, `"loss", "graph/nothing"]`, 1))
	stderr := fails(t, exitFailed, []string{"ablate", "--config", file, "--out", t.TempDir(), "--seeds", "1", "--set", "train.max_steps=1"},
		`warning: a, seed 1 logged no "graph/nothing"`, `metrics: no run logged "graph/nothing": it has epoch, time, loss`)
	if strings.Contains(stderr, "failed (") {
		t.Errorf("%s", stderr)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text := check.Get(os.ReadFile(path))(t)
	return string(text)
}

// Every problem is found before the first run, and no folder is made.
func TestAblateChecksFirst(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	one := "[[run]]\nname = \"a\"\n"
	for _, c := range []struct {
		text, flags string
		want        []string
	}{
		{"[[run]]\nname = \"a\"\nset = [\"optimizer.lr=-1\", \"train.batch_sise=3\"]\n[[run]]\nname = \"b\"\nset = [\"queue.size\"]\n", "", []string{
			"run a: --set train.batch_sise=3: train.batch_sise: unknown key; did you mean train.batch_size?", "run a: --set optimizer.lr=-1: optimizer.lr: must be > 0 (got -1)",
			"run b: --set queue.size: must have the form", "has 5 problems"}},
		{one + "[[run]]\nname = \"b\"\n", "--set momentum.m=2", []string{"every run: --set momentum.m=2: momentum.m: must be", "has 1 problem\n"}},
		{"[[run]]\nname = \"a\"\nset = [\"run.seed=3\"]\n", "", []string{"run a: --set run.seed=3: run.seed: belongs to the ablation"}},
		{one + "[[run]]\nname = \"b\"\nstart = \"a\"\nset = [\"init.checkpoint=x\"]\n", "", []string{"run b: --set init.checkpoint=x: init.checkpoint: is what start stands for"}},
		{one + "[[run]]\nname = \"b\"\nstart = \"a\"\nset = [\"model.text.heads=4\"]\n", "", []string{"run b: model.text.heads: the run that it starts from, a, has 2"}},
		{one + "[[run]]\nname = \"b\"\nstart = \"c\"\n", "", []string{"starts from a run that is not there"}},
		{one, "--seeds 0", []string{"--seeds must be between 1 and 1000"}},
		{one, "--seeds 1,1", []string{"--seeds must be a number of seeds or a list"}},
		{one, "--seeds x", []string{"--seeds must be a number of seeds or a list"}},
		{one, "--only b*", []string{`no run matches "b*"`}},
	} {
		args := append([]string{"ablate", "--config", matrix(t, c.text), "--out", out}, strings.Fields(c.flags)...)
		fails(t, exitUsage, args, c.want...)
	}
	data := "[[run]]\nname = \"a\"\nset = [\"data.kind=captions\", \"data.captions.train_files=lost.json\", \"data.captions.test_files=lost.json\"]\n"
	for _, more := range [][]string{{"--dry-run"}, {}} { // before the first run
		fails(t, exitUsage, append([]string{"ablate", "--config", matrix(t, data), "--out", out}, more...), "run a: data.captions.train_files: ", "lost.json")
	}
	fails(t, exitUsage, []string{"ablate"}, "needs --config")
	fails(t, exitUsage, []string{"ablate", "--config", "none.toml"}, "none.toml")
	fails(t, exitUsage, []string{"ablate", "--config", write(t, "m.toml", "base = \"none.toml\"\nmetrics = [\"loss\"]\n"+one)}, "base: ", "none.toml", "relative to the matrix file")
	if _, err := os.Stat(out); err == nil {
		t.Errorf("%s was made", out)
	}
}

func TestSeedsFlag(t *testing.T) {
	for text, want := range map[string]string{"3": "[1 2 3]", "5,": "[5]", "4, 2": "[4 2]", "0,1": "[0 1]"} {
		if got, err := parseSeeds(text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// regionFiles writes the files of data.kind "regions" for three splits of 100 images.
func regionFiles(t *testing.T, root string) {
	t.Helper()
	for _, split := range []string{"train", "dev", "test"} {
		for name, shape := range map[string][]int{"ims": {2, 6}, "boxes": {2, 4}} {
			rows := func(emit func([]float32) error) error {
				row := make([]float32, shape[0]*shape[1])
				for range 100 {
					if err := emit(row); err != nil {
						return err
					}
				}
				return nil
			}
			check.OK(t, features.WriteArray(filepath.Join(root, split+"_"+name+".npy"), shape, rows))
		}
		if err := os.WriteFile(filepath.Join(root, split+"_caps.txt"), []byte(strings.Repeat("a photo\n", 500)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The matrices that are shipped name keys and metrics that exist.
func TestShippedMatrices(t *testing.T) {
	files, err := fs.Glob(os.DirFS("../../configs/ablation"), "*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	// Stored features tell how wide heads are, some matrices name a table of their pairs, and one reads files of regions.
	root, table := featuresFolder(t, 9000, 12), "split\timage_row\ttext_row\n"
	for i := range 9000 {
		table += fmt.Sprintf("%s\t%d\t%d\n", []string{"train", "train", "train", "train", "val", "test"}[i%6], i, i)
	}
	check.OK(t, os.WriteFile(filepath.Join(root, "pairs.tsv"), []byte(table), 0o644))
	regionFiles(t, root)
	stored := []string{"data.root=" + root, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors"}
	for _, f := range files {
		t.Run(f, func(t *testing.T) {
			t.Parallel()
			// Keys and metrics are those of any seed.
			o := ablate.Options{Out: t.TempDir(), Set: stored, Seeds: []int64{1}, Log: io.Discard}
			check.Get(ablate.Open(filepath.Join("../../configs/ablation", f), o))(t)
		})
	}
}
