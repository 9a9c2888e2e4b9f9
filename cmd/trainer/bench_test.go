package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/internal/check"
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

func TestBenchSaveAndCompare(t *testing.T) {
	quickPeak(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "before.json")
	args := []string{"bench", "--config", tiny, "--steps", "1", "--warmup", "1"}
	must(t, exitDone, append(args, "--save", file)...)
	before := check.Get(bench.Read(file))(t)
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
	var saved struct{ Tables []bench.Table }
	text := check.Get(os.ReadFile(file))(t)
	check.OK(t, json.Unmarshal(text, &saved))
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
	check.Fails(bench.Read(file))(t, "not a result of one configuration")
}

// TestBenchVaryFails: what was measured before a row fails is kept by --save, with --json too, which prints no half
// result.
func TestBenchVaryFails(t *testing.T) {
	quickPeak(t)
	for _, more := range [][]string{nil, {"--json"}} {
		file := filepath.Join(t.TempDir(), "table.json")
		code, stdout, stderr := trainer(t, append(append([]string{"bench", "--steps", "1", "--warmup", "0", "--save", file,
			"--vary", "train.accumulate=gradients,features", "--set", "train.accumulate_steps=2"}, tinyHeadsArgs...), more...)...)
		var saved struct{ Tables []bench.Table }
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &saved)
		}
		if code != exitUsage || !strings.Contains(stderr, "train.accumulate") || (stdout == "") != (more != nil) || err != nil || len(saved.Tables) != 1 || len(saved.Tables[0].Rows) != 1 {
			t.Errorf("%v: code %d, %s, saved %s, %v", more, code, stderr, text, err)
		}
	}
}

// TestBenchTooLarge refuses what no machine holds, alone and as a row of a table.
func TestBenchTooLarge(t *testing.T) {
	quickPeak(t)
	large := []string{"--set", "model.heads.hidden=1048576", "--set", "model.head.dim=65536"}
	fails(t, exitFailed, append(append([]string{"bench"}, tinyHeadsArgs...), large...), "this machine has", "parameters")
	stdout, _ := must(t, exitDone, append([]string{"bench", "--steps", "1", "--warmup", "0", "--vary", "hidden=16,1048576"}, append(tinyHeadsArgs, "--set", "model.head.dim=65536")...)...)
	contains(t, stdout, "too large", "hidden=1048576: model: training takes at least")
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
		{exitUsage, []string{"--warmup", "-1"}, []string{"--warmup must be >= 0"}},
		{exitUsage, []string{"--fail-below", "0.9"}, []string{"--fail-below needs --compare"}},
		{exitUsage, []string{"--fail-below", "0", "--compare", text}, []string{"--fail-below must be > 0 (got 0)"}},
		{exitUsage, []string{"--compare", text, "--vary", "batch=1,2"}, []string{"do not go together"}},
		{exitFailed, []string{"--compare", "none.json"}, []string{"--compare", "none.json"}},
		{exitFailed, []string{"--compare", text}, []string{"is not a bench result", "trainer bench --save FILE"}},
		{exitFailed, []string{"--compare", other}, []string{"not a result of one configuration", "trainer bench --save FILE"}},
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

// TestPrintComparison looks at a line of a comparison.
func TestPrintComparison(t *testing.T) {
	c := bench.Compare("old.json", bench.Result{StepMS: 200, Samples: 40}, bench.Result{StepMS: 100, Samples: 80, Ops: []bench.Time{{Name: "linear gelu", MS: 30}}})
	var out bytes.Buffer
	printComparison(&out, c)
	contains(t, out.String(), "samples per second    40.0   80.0        2.00\n", "linear gelu")
}
