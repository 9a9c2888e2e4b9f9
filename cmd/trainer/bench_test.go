package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
)

// quickPeak shortens the measurement of the peak for a test.
func quickPeak(t *testing.T) {
	old := peakTime
	peakTime = time.Millisecond
	t.Cleanup(func() { peakTime = old })
}

// tinyHeadsArgs are the overrides of small alignment heads.
var tinyHeadsArgs = []string{"--config", "../../configs/bench/heads.toml", "--set", "train.batch_size=8", "--set", "model.heads.hidden=16",
	"--set", "model.heads.in_image=12", "--set", "model.heads.in_text=10", "--set", "model.head.dim=8"}

func TestBench(t *testing.T) {
	quickPeak(t)
	stdout, stderr := must(t, exitDone, "bench", "--config", tiny, "--steps", "2", "--warmup", "1")
	contains(t, stdout, "samples per second", "GEMM peak", "share of the peak", "allocations per step", "planned memory", "start to first step",
		"forward", "backward", "optimizer and momentum", "queue", "linear dw")
	if stderr != "" { // advice about learning has no place here
		t.Errorf("stderr: %s", stderr)
	}
	stdout, _ = must(t, exitDone, append([]string{"bench", "--steps", "2", "--warmup", "0", "--json"}, tinyHeadsArgs...)...)
	m := parseJSON(t, stdout)
	for _, k := range []string{"samples_per_second", "gflops", "gemm_peak_gflops", "buffers_mb", "state_mb"} {
		if m[k].(float64) <= 0 {
			t.Errorf("%s is %v", k, m[k])
		}
	}
	if m["system"] != "heads" || m["batch"] != 8.0 || len(m["phases"].([]any)) != 4 {
		t.Errorf("got %s", stdout)
	}
}

// TestBenchPhases checks that the times of all phases make up the step.
func TestBenchPhases(t *testing.T) {
	cfg, err := config.Load(tiny, nil)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	r, err := bench(t.Context(), cfg, benchOptions{steps: 3, warmup: 1, peak: time.Millisecond,
		progress: func(phase string, done, total int) { shown = append(shown, phase) }})
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, p := range r.Phases {
		sum += p.Share
	}
	if sum < 0.95 || sum > 1.001 {
		t.Errorf("the phases are %.3f of the step: %+v", sum, r.Phases)
	}
	if r.First == nil || r.First.End < r.First.Begin || r.First.Begin <= 0 {
		t.Errorf("first step at %+v", r.First)
	}
	if !slices.Equal(slices.Compact(shown), []string{"warm-up", "measuring"}) {
		t.Errorf("progress %v", shown)
	}
}

func TestBenchSaveAndCompare(t *testing.T) {
	quickPeak(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "before.json")
	args := []string{"bench", "--config", tiny, "--steps", "1", "--warmup", "1"}
	must(t, exitDone, append(args, "--save", file)...)
	before, err := readBenchmark(file)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("files beside the result: %v", list)
	}

	stdout, stderr := must(t, exitDone, append(args, "--compare", file, "--set", "train.batch_size=4", "--fail-below", "1e-6")...)
	contains(t, stdout, "beside "+file, "now/before", "peak memory MB", "linear dx")
	contains(t, stderr, "note: batch differs: 8 in "+file+", 4 now")

	code, stdout, stderr := trainer(t, append(args, "--compare", file, "--fail-below", "1e6", "--json", "--quiet")...)
	if code != exitFailed || !strings.Contains(stderr, "less than --fail-below 1e+06") || strings.Contains(stderr, "note:") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	beside := parseJSON(t, stdout)["comparison"].(map[string]any)
	first := beside["rows"].([]any)[0].(map[string]any)
	if beside["file"] != file || first["name"] != "step ms" || first["before"] != before.StepMS || first["ratio"].(float64) <= 0 {
		t.Errorf("comparison %v", beside)
	}
}

func TestBenchVary(t *testing.T) {
	quickPeak(t)
	file := filepath.Join(t.TempDir(), "table.json")
	stdout, stderr := must(t, exitDone, append([]string{"bench", "--steps", "1", "--warmup", "0", "--save", file,
		"--vary", "batch=4,8", "--vary", "model.heads.dropout=0,0.5"}, tinyHeadsArgs...)...)
	contains(t, stdout, "what a step costs by batch", "what a step costs by model.heads.dropout", "speed-up", "planned MB")
	contains(t, stderr, "batch=4: ", "model.heads.dropout=0.5: ", "ms a step")
	var saved struct{ Tables []costTable }
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	if len(saved.Tables) != 2 || len(saved.Tables[0].Rows) != 2 {
		t.Fatalf("saved %s", text)
	}
	for i, row := range saved.Tables[0].Rows {
		if want := []int{4, 8}[i]; row.Result == nil || row.Result.Batch != want || row.Speed <= 0 || i == 0 && row.Speed != 1 {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if a, b := saved.Tables[0].Rows[0].Result, saved.Tables[0].Rows[1].Result; b.GFLOP <= a.GFLOP || b.BufferMB <= a.BufferMB {
		t.Error("twice the batch costs no more")
	}
	if _, err := readBenchmark(file); err == nil || !strings.Contains(err.Error(), "no result of one configuration") {
		t.Errorf("comparing with a table: %v", err)
	}
}

// TestBenchVaryInterrupted keeps the rows measured before an interruption.
func TestBenchVaryInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	load := func(sets ...string) (config.Config, error) { return config.Load(tiny, sets) }
	a, err := parseAxis("batch=4,8,16")
	if err != nil {
		t.Fatal(err)
	}
	o := benchOptions{steps: 1, peak: time.Millisecond, progress: func(string, int, int) {}, row: func(string) { cancel() }}
	tables, err := costTables(ctx, []axis{a}, load, o)
	if !errors.Is(err, context.Canceled) || len(tables) != 1 || len(tables[0].Rows) != 1 {
		t.Errorf("got %v and %+v", err, tables)
	}
}

// TestBenchTooLarge refuses what no machine holds, alone and as a row of a table.
func TestBenchTooLarge(t *testing.T) {
	quickPeak(t)
	large := "model.heads.hidden=2000000000"
	fails(t, exitFailed, append(append([]string{"bench"}, tinyHeadsArgs...), "--set", large), "this machine has", "parameters")
	stdout, _ := must(t, exitDone, append([]string{"bench", "--steps", "1", "--warmup", "0", "--vary", "hidden=16,2000000000"}, tinyHeadsArgs...)...)
	contains(t, stdout, "too large", "hidden=2000000000: model: training takes at least")
}

func TestBenchBadInput(t *testing.T) {
	text := write(t, "text.json", "not JSON")
	other := write(t, "other.json", `{"r1": 12}`)
	for _, r := range []struct {
		code int
		args []string
		want []string
	}{
		{exitUsage, []string{"--steps", "0"}, []string{"--steps must be > 0"}},
		{exitUsage, []string{"--warmup", "-1"}, []string{"--warmup >= 0"}},
		{exitUsage, []string{"--fail-below", "0.9"}, []string{"--fail-below needs --compare"}},
		{exitUsage, []string{"--fail-below", "0", "--compare", text}, []string{"--fail-below must be > 0 (got 0)"}},
		{exitUsage, []string{"--compare", text, "--vary", "batch=1,2"}, []string{"do not go together"}},
		{exitFailed, []string{"--compare", "none.json"}, []string{"--compare", "none.json"}},
		{exitFailed, []string{"--compare", text}, []string{"is no bench result", "trainer bench --save FILE"}},
		{exitFailed, []string{"--compare", other}, []string{"no result of one configuration", "trainer bench --save FILE"}},
		{exitUsage, []string{"--vary", "batch"}, []string{"must have the form batch=8,16,32"}},
		{exitUsage, []string{"--vary", "batch="}, []string{"an empty value"}},
		{exitUsage, []string{"--vary", "batch=8,,16"}, []string{"an empty value"}},
		{exitUsage, []string{"--vary", "batch=8, 8"}, []string{"8 is in the list twice"}},
		{exitUsage, []string{"--vary", "batsh=8"}, []string{`there is no "batsh"`, "batch, depth, hidden"}},
		{exitUsage, []string{"--vary", "train.batch_sise=8"}, []string{"unknown key", "did you mean train.batch_size?"}},
		{exitUsage, []string{"--vary", "batch=8,-4"}, []string{"--vary batch=-4: train.batch_size: must be > 0 (got -4)"}},
		{exitUsage, []string{"--vary", "depth=six"}, []string{"--vary depth=six: model.image.depth: must be an integer"}},
		{exitUsage, []string{"--vary", "batch=8,9000"}, []string{"--vary batch=9000: queue.size: must be 0 or at least train.batch_size"}},
	} {
		fails(t, r.code, append([]string{"bench", "--config", tiny}, r.args...), r.want...)
	}
}

func TestHeadsAreNotTrainedHere(t *testing.T) {
	for _, command := range []string{"train", "finetune", "eval"} {
		args := append([]string{command}, tinyHeadsArgs...)
		if command != "train" {
			dir := t.TempDir()
			must(t, exitDone, tinyArgs(dir, "--max-steps", "1", "--quiet")...)
			args = append(args, "--checkpoint", dir)
		}
		fails(t, exitUsage, args, "model.system: is trained on stored features", "model/heads_example_test.go")
	}
}

func TestAxes(t *testing.T) {
	base := config.Default() // 6 text and 6 fusion layers, 512 positions
	plain := base
	plain.Model.Text.FusionLayers = 0
	for _, r := range []struct {
		base config.Config
		axis string
		want string
	}{
		{base, "batch=8", "train.batch_size=8"},
		{base, "queue = 0", "queue.size=0"},
		{base, "vocabulary=100", "data.vocab_size=100"},
		{base, "threads=2", "compute.threads=2"},
		{base, "tokens=20", "data.tokens=20"},
		{base, "tokens=600", "data.tokens=600 model.text.positions=600"},
		{base, "depth=4", "model.image.depth=4 model.text.layers=2 model.text.fusion_layers=2"},
		{base, "depth=5", "model.image.depth=5 model.text.layers=3 model.text.fusion_layers=2"},
		{base, "depth=1", "model.image.depth=1 model.text.layers=1 model.text.fusion_layers=1"},
		{plain, "depth=4", "model.image.depth=4 model.text.layers=4 model.text.fusion_layers=0"},
		{base, "momentum.enabled=true", "momentum.enabled=true"},
	} {
		a, err := parseAxis(r.axis)
		if err != nil {
			t.Errorf("%s: %v", r.axis, err)
			continue
		}
		if got := strings.Join(a.sets(r.base, a.values[0]), " "); got != r.want {
			t.Errorf("%s sets %s, want %s", r.axis, got, r.want)
		}
	}
}

// TestCompare looks at the numbers of a comparison by hand.
func TestCompare(t *testing.T) {
	before := benchmark{Config: "a", Engine: "plain", Threads: 1, StepMS: 200, Samples: 40, Peak: 100,
		Phases: []benchTime{{Name: "forward", MS: 80}}, Ops: []benchTime{{Name: "linear", MS: 50}, {Name: "gelu", MS: 10}}}
	now := benchmark{Config: "a", System: "albef", Precision: "bf16", Engine: "onednn", Threads: 2, StepMS: 100, Samples: 80, Peak: 150,
		Phases: []benchTime{{Name: "forward", MS: 20}}, Ops: []benchTime{{Name: "linear", MS: 25}, {Name: "linear gelu", MS: 30}}}
	c := compare("old.json", before, now)
	if want := []string{"engine differs: plain in old.json, onednn now", "threads differs: 1 in old.json, 2 now"}; !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings %q, want %q", c.Warnings, want)
	}
	find := func(group, name string) comparedAt {
		for _, r := range c.Rows {
			if r.Group == group && r.Name == name {
				return r
			}
		}
		t.Errorf("no row for the %s %s", group, name)
		return comparedAt{}
	}
	for _, want := range []comparedAt{
		{"step", "step ms", 200, 100, 0.5}, {"step", "samples per second", 40, 80, 2}, {"step", "GEMM peak GFLOP/s", 100, 150, 1.5},
		{"step", "peak memory MB", 0, 0, 0}, {"phase", "forward", 80, 20, 0.25}, {"op", "linear", 50, 25, 0.5},
		{"op", "gelu", 10, 0, 0}, {"op", "linear gelu", 0, 30, 0},
	} {
		if got := find(want.Group, want.Name); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if c.speed() != 2 {
		t.Errorf("speed %v, want 2", c.speed())
	}
	var out bytes.Buffer
	c.print(&out)
	contains(t, out.String(), "samples per second    40.0   80.0        2.00\n", "linear gelu")
}

func TestProcessAge(t *testing.T) {
	// Fields as in proc_pid_stat(5): the 22nd is 12345 ticks of 1/100 s.
	const stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 12345 1000 20"
	for _, r := range []struct {
		stat, uptime string
		want         time.Duration
		ok           bool
	}{
		{stat, "125.45 200.00\n", 2 * time.Second, true},
		{stat, "100.00 200.00\n", 0, false}, // before its start
		{stat, "", 0, false},
		{stat, "x y", 0, false},
		{"7 (a) S 1 2", "125.45 1", 0, false},
		{"", "125.45 1", 0, false},
	} {
		got, ok := processAge(r.stat, r.uptime)
		if ok != r.ok || (got-r.want).Abs() > time.Millisecond {
			t.Errorf("%q, %q: %v %v, want %v %v", r.stat, r.uptime, got, ok, r.want, r.ok)
		}
	}
	if d := sinceStart(); d <= 0 || d > 24*time.Hour {
		t.Errorf("this process is %v old", d)
	}
}
