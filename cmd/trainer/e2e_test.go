package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// tiny is a run of 20 steps that takes less than a second: every loss, momentum,
// queue and dropout on, an evaluation every 6 steps and a checkpoint every 4.
const tiny = "testdata/tiny.toml"

// tinyArgs is the command line of a tiny run into the folder out.
func tinyArgs(out string, more ...string) []string {
	return append([]string{"train", "--config", tiny, "--out", out}, more...)
}

// must runs a command line that has to end with the exit code want.
func must(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := trainer(t, args...)
	if code != want {
		t.Fatalf("%q: code %d, want %d\nstdout: %s\nstderr: %s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// fails runs a command line that has to fail with the exit code want and with all
// of texts on stderr, in few lines.
func fails(t *testing.T, want int, args []string, texts ...string) string {
	t.Helper()
	_, stderr := must(t, want, args...)
	checkAdvice(t, args, stderr)
	for _, s := range texts {
		if !strings.Contains(stderr, s) {
			t.Errorf("%q: %q is not in\n%s", args, s, stderr)
		}
	}
	if strings.Contains(stderr, "goroutine ") || strings.Contains(stderr, "panic: ") {
		t.Errorf("%q: a crash instead of an error:\n%s", args, stderr)
	}
	return stderr
}

// contains fails unless text has every part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries := check.Get(os.ReadDir(dir))(t)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// rows reads metrics.jsonl without what the clock says.
func rows(t *testing.T, dir string) []runlog.Row {
	t.Helper()
	list := check.Get(runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile)))(t)
	for _, r := range list {
		maps.DeleteFunc(r.Values, func(k string, _ float64) bool { return runlog.Timed(k) })
	}
	return list
}

// tensorFiles reads the tensors of the newest checkpoint of a run.
func tensorFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	c := check.Get(checkpoint.Load(dir))(t)
	defer c.Close()
	files := map[string][]byte{}
	for _, g := range []string{"model", "momentum", "optimizer", "queue", "graph"} {
		b, err := os.ReadFile(filepath.Join(c.Path, g+".safetensors"))
		if g != "model" && errors.Is(err, fs.ErrNotExist) {
			continue // only runs with a teacher, a queue or geodesic scores have them
		}
		if err != nil {
			t.Fatal(err)
		}
		files[g] = b
	}
	return files
}

// sameRun fails unless two runs ended with the same bits and logged the same.
func sameRun(t *testing.T, got, want string) {
	t.Helper()
	a, b := tensorFiles(t, got), tensorFiles(t, want)
	for g := range b {
		if !bytes.Equal(a[g], b[g]) {
			t.Errorf("%s.safetensors differs", g)
		}
	}
	x, y := rows(t, got), rows(t, want)
	if len(x) != len(y) {
		t.Errorf("%d rows of metrics, want %d", len(x), len(y))
	}
	for i := range min(len(x), len(y)) {
		if x[i].Step != y[i].Step || !maps.Equal(x[i].Values, y[i].Values) {
			t.Errorf("row %d is %v, want %v", i, x[i], y[i])
		}
	}
}

func TestTrainFillsTheRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stdout, stderr := must(t, exitDone, tinyArgs(dir, "--seed", "9")...)
	contains(t, stdout, "retrieval on val: 12 images, 12 texts", "re-ranked", "chance", "run folder: "+dir)
	contains(t, stderr, "parameters", "run folder "+dir, "chance level of itc_in_batch: 2.079", "step 1/20", "step 20/20", "ETA",
		"itc ", "itc_in_batch ", "itm ", "mlm ", "lr ", "temp ", "samples/s", "step 12  val: image to text / text to image: cosine R@1", "re-ranked R@1", "checkpoints compared by")

	list := names(t, dir)
	events := slices.IndexFunc(list, func(n string) bool { return strings.HasPrefix(n, "events.out.tfevents.") })
	if events < 0 || len(list) != 8 || !slices.Contains(list, "data.json") || !slices.Contains(list, "data.sums") || !slices.Contains(list, "report.html") {
		t.Errorf("run folder holds %v", list)
	}
	cfg, err := config.Load(filepath.Join(dir, "config.toml"), nil)
	if err != nil || cfg.Run.Seed != 9 || cfg.Run.Out != dir {
		t.Errorf("config.toml: %v, %+v", err, cfg.Run)
	}
	var env map[string]any
	raw, err := os.ReadFile(filepath.Join(dir, "environment.json"))
	if err != nil || json.Unmarshal(raw, &env) != nil || len(env) < 5 {
		t.Errorf("environment.json: %v %s", err, raw)
	}

	// keep_last = 2 and keep_best = 1: an evaluation happens at a saved step at 12
	// and at 20, so 16 and 20 stay, and 12 if it is the better one.
	ck := names(t, filepath.Join(dir, "checkpoints"))
	twelve := []string{"latest", "step-00000012", "step-00000016", "step-00000020"}
	if !slices.Equal(ck, twelve) && !slices.Equal(ck, slices.Delete(slices.Clone(twelve), 1, 2)) {
		t.Errorf("checkpoints: %v", ck)
	}
	want := []string{"config.toml", "model.safetensors", "momentum.safetensors", "optimizer.safetensors", "queue.safetensors", "state.json", "tokenizer.json"}
	if got := names(t, filepath.Join(dir, "checkpoints", "step-00000020")); !slices.Equal(got, want) {
		t.Errorf("a checkpoint holds %v", got)
	}
	latest, err := os.ReadFile(filepath.Join(dir, "checkpoints", "latest"))
	if err != nil || !strings.HasPrefix(string(latest), "step-00000020\n") {
		t.Errorf("latest: %v %q", err, latest)
	}
	c, err := checkpoint.Load(dir)
	if err != nil || c.Metric == nil {
		t.Fatalf("the last checkpoint has no metric: %v", err)
	}
	c.Close()
}

func TestMetricsRows(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet")...)
	list := check.Get(runlog.ReadMetrics(filepath.Join(dir, "metrics.jsonl")))(t)
	var steps []int
	for _, r := range list {
		steps = append(steps, r.Step)
		for _, k := range []string{"epoch", "time", "loss", "loss/itc", "loss/itc_in_batch", "loss/itm", "loss/mlm", "lr", "temperature", "grad_norm", "samples_per_second"} {
			if _, ok := r.Values[k]; !ok {
				t.Errorf("step %d has no %s", r.Step, k)
			}
		}
		sum := r.Values["loss/itc"] + r.Values["loss/itc_in_batch"] + r.Values["loss/itm"] + r.Values["loss/mlm"]
		if d := sum - r.Values["loss"]; d > 1e-4 || d < -1e-4 {
			t.Errorf("step %d: the parts add up to %v, the loss is %v", r.Step, sum, r.Values["loss"])
		}
		_, ok := r.Values["eval/retrieval/i2t_r1"]
		_, sum2 := r.Values["eval/retrieval/rsum"]
		if due := r.Step == 6 || r.Step == 12 || r.Step == 18 || r.Step == 20; ok != due || sum2 != due {
			t.Errorf("step %d: an evaluation: %v", r.Step, ok)
		}
	}
	if want := []int{1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20}; !slices.Equal(steps, want) {
		t.Errorf("rows of %v, want %v", steps, want)
	}
	// 60 samples are 7 batches of 8 with data.drop_last.
	if e := list[4].Values["epoch"]; e != 8.0/7 {
		t.Errorf("epoch of step 8 is %v", e)
	}
}

func TestOnlyTheEndIsEvaluated(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--max-steps", "3", "--set", "train.eval_every_steps=0")...)
	for _, r := range rows(t, dir) {
		if _, ok := r.Values["eval/retrieval/rsum"]; ok != (r.Step == 3) {
			t.Errorf("step %d: %v", r.Step, r.Values)
		}
	}
}

func TestJSONAndQuiet(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--json", "--quiet")...)
	m := parseJSON(t, stdout)
	if stderr != "" || m["task"] != "retrieval" || m["split"] != "val" || m["images"] != 12.0 || m["path"] != dir {
		t.Errorf("stderr %q, stdout %s", stderr, stdout)
	}
	for _, k := range []string{"first", "rerank", "chance"} {
		if _, ok := m[k].(map[string]any)["i2t_r1"]; !ok {
			t.Errorf("%s: %v", k, m[k])
		}
	}
	stdout, stderr = must(t, exitDone, tinyArgs(t.TempDir(), "--max-steps", "2", "--quiet")...)
	if stderr != "" || !strings.Contains(stdout, "run folder: ") {
		t.Errorf("stderr %q, stdout %s", stderr, stdout)
	}
}

func TestFinishedRunIsOnlyEvaluated(t *testing.T) {
	dir := t.TempDir()
	first, _ := must(t, exitDone, tinyArgs(dir, "--max-steps", "4")...)
	before, list, tensors := rows(t, dir), names(t, dir), tensorFiles(t, dir)
	again, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "4")...)
	contains(t, stderr, "the run is finished at step 4", "train.max_steps")
	if again != first {
		t.Errorf("another result:\n%s\n%s", again, first)
	}
	if now := rows(t, dir); len(now) != len(before) || !slices.Equal(names(t, dir), list) {
		t.Errorf("%d rows, then %d; files %v, then %v", len(before), len(now), list, names(t, dir))
	}
	for g, b := range tensorFiles(t, dir) {
		if !bytes.Equal(b, tensors[g]) {
			t.Errorf("%s was written again", g)
		}
	}

	// A longer run goes on; a shorter one is refused and changes nothing.
	_, stderr = must(t, exitDone, tinyArgs(dir, "--max-steps", "6")...)
	contains(t, stderr, "going on from step 4", "changed since the checkpoint: train.max_steps = 6 (was 4)", "step 6/6")
	saved := check.Get(os.ReadFile(filepath.Join(dir, "config.toml")))(t)
	fails(t, exitFailed, tinyArgs(dir, "--max-steps", "5"), "the checkpoint is at step 6 of a run of 5", "train.max_steps", "--resume never")
	if now, _ := os.ReadFile(filepath.Join(dir, "config.toml")); !bytes.Equal(now, saved) {
		t.Error("a refused run rewrote config.toml")
	}
}

func TestResumeNeverKeepsEarlierRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir, "--max-steps", "2", "--quiet")...)
	tensors := tensorFiles(t, dir)
	for _, n := range []string{"2", "3"} {
		stdout, stderr := must(t, exitDone, tinyArgs(dir, "--max-steps", "1", "--resume", "never")...)
		contains(t, stderr, dir+" holds an earlier run: this one goes to "+dir+"-"+n)
		contains(t, stdout, "run folder: "+dir+"-"+n)
	}
	for g, b := range tensorFiles(t, dir) {
		if !bytes.Equal(b, tensors[g]) {
			t.Errorf("%s of the earlier run changed", g)
		}
	}
}

func TestResumeFromAPath(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, exitDone, tinyArgs(a, "--quiet", "--set", "train.keep_last=0")...)
	four := filepath.Join(a, "checkpoints", "step-00000004")
	_, stderr := must(t, exitDone, tinyArgs(b, "--resume", four)...)
	contains(t, stderr, "going on from step 4 of "+four)
	x, y := tensorFiles(t, a), tensorFiles(t, b)
	for g := range x {
		if !bytes.Equal(x[g], y[g]) {
			t.Errorf("%s differs", g)
		}
	}
	fails(t, exitUsage, tinyArgs(b, "--resume", four), b+" holds another run than "+four, "--out")
	fails(t, exitFailed, tinyArgs(filepath.Join(dir, "c"), "--resume", filepath.Join(dir, "none")), "--resume", "no checkpoint", "there is no such folder")
	fails(t, exitFailed, tinyArgs(filepath.Join(dir, "c"), "--resume", t.TempDir()), "no checkpoint", "no complete step folder")
}

// Dry runs report sizes and times and write nothing.
func TestDryRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stdout, _ := must(t, exitDone, tinyArgs(dir, "--dry-run")...)
	contains(t, stdout, "image/pos_embed", "parameters,", "memory:", "s a step", "for 20 steps of 8 samples")
	stdout, _ = must(t, exitDone, tinyArgs(dir, "--dry-run", "--json")...)
	if m := parseJSON(t, stdout); m["steps"] != 20.0 || m["steps_per_epoch"] != 7.0 || m["parameters"].(float64) < 1000 || m["step_seconds"].(float64) <= 0 || m["samples"] != 8.0 || m["engine"] == nil {
		t.Errorf("%s", stdout)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a dry run made %s (%v)", dir, err)
	}
}

// interrupted runs a command line and cancels it once metrics.jsonl in dir has a
// row of step, or a later one.
func interrupted(t *testing.T, dir string, step int, args ...string) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, before := make(chan int), lastRow(dir)
	var out, errOut bytes.Buffer
	go func() { done <- execute(ctx, args, &out, &errOut) }()
	for {
		select {
		case code := <-done:
			if code != exitDone && code != exitInterrupted {
				t.Fatalf("code %d: %s", code, errOut.String())
			}
			if code == exitInterrupted && !strings.Contains(errOut.String(), "interrupted and saved") {
				t.Errorf("stderr: %s", errOut.String())
			}
			return code
		case <-time.After(time.Millisecond):
			if last := lastRow(dir); last >= step && last > before { // not before it has begun
				cancel()
			}
		}
	}
}

// lastRow returns the step of the last row of a metrics.jsonl, 0 if there is none.
func lastRow(dir string) int {
	list, err := runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile))
	if err != nil || len(list) == 0 {
		return 0
	}
	return list[len(list)-1].Step
}

// What the text of train tells its JSON tells too.
func TestTrainJSONTellsFurtherTasks(t *testing.T) {
	stdout, _ := must(t, exitDone, tinyArgs(t.TempDir(), "--set", `eval.beside=["probe"]`, "--max-steps", "1", "--quiet", "--json")...)
	m := parseJSON(t, stdout)
	beside, _ := m["beside"].([]any)
	if m["task"] != "retrieval" || len(beside) != 1 || beside[0].(map[string]any)["task"] != "probe" {
		t.Errorf("got %s", stdout)
	}
}

// What took its time to find is printed where the file that it goes to cannot be written.
func TestFoundIsPrinted(t *testing.T) {
	quickPeak(t)
	dir := t.TempDir()
	out, none := filepath.Join(dir, "run"), filepath.Join(dir, "none", "file")
	must(t, exitDone, tinyArgs(out, "--max-steps", "1", "--quiet")...)
	for want, args := range map[string][]string{
		"samples per second": {"bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--save", none},
		`"tables"`:           {"bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--vary", "batch=2", "--save", none, "--json"},
		"per second":         {"bench", "--config", tiny, "--inference", "--batches", "1", "--seconds", "0", "--save", none},
		"ratio":              {"bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--against", "train.batch_size=2", "--save", none},
		"zero-shot accuracy": {"eval", "--checkpoint", out, "--task", "zeroshot", "--out", none},
	} {
		stdout, stderr := must(t, exitFailed, args...)
		if !strings.Contains(stdout, want) || !strings.Contains(stderr, "choose another file with --") {
			t.Errorf("%q: stdout %q, stderr %q", args, stdout, stderr)
		}
	}
}
