package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchInference prints a table of both precisions, the same as JSON and in a file, and refuses what does not go
// together.
func TestBenchInference(t *testing.T) {
	quickPeak(t)
	args := []string{"bench", "--inference", "--config", tiny, "--batches", "1,3", "--seconds", "0"}
	stdout, stderr := must(t, exitDone, append(args, "--precisions", "fp32,bf16,int8")...)
	contains(t, stdout, "tiny: encoding in fp32", "tiny: encoding in bf16", "tiny: encoding in int8", "GEMM peak", "per second", "x fp32", "1.00", "features", "states", "images, 3 at a time", "texts, 3 at a time", "self attention")
	if stderr != "" {
		t.Errorf("stderr: %s", stderr)
	}
	file := filepath.Join(t.TempDir(), "encoding.json")
	stdout, _ = must(t, exitDone, append(args, "--sides", "texts", "--json", "--save", file)...)
	list := parseJSON(t, stdout)["inference"].([]any)
	encodings := list[0].(map[string]any)["encodings"].([]any)
	if len(list) != 1 || len(encodings) != 4 {
		t.Fatalf("got %s", stdout)
	}
	for _, x := range encodings {
		e := x.(map[string]any)
		if e["side"] != "texts" || !(e["per_second"].(float64) > 0) || !(e["batch_p95_ms"].(float64) > 0) || len(e["ops"].([]any)) < 5 {
			t.Errorf("%v", e)
		}
	}
	if saved, err := os.ReadFile(file); err != nil || string(saved) != stdout {
		t.Errorf("--save wrote %s (%v), --json %s", saved, err, stdout)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--inference", "--steps", "3"}, "--inference does not go with --steps"},
		{[]string{"--inference", "--vary", "batch=1,2"}, "--inference does not go with --vary"},
		{[]string{"--inference", "--seconds", "Inf"}, "--seconds must be at most 86400 (got +Inf)"},
		{[]string{"--inference", "--batches", "0"}, "--batches must be > 0 (got 0)"},
		{[]string{"--inference", "--seconds", "-1"}, "--seconds must be >= 0 (got -1)"},
		{[]string{"--inference", "--sides", "sounds"}, `no such side (got "sounds"): choose images or texts`},
		{[]string{"--inference", "--precisions", "fp8"}, "compute.precision"},
		{[]string{"--set", "compute.precision=int8"}, `compute.precision: must be "fp32" or "bf16" to train (got "int8")`},
		{[]string{"--batches", "8"}, "--batches is of --inference"},
	} {
		code, _, stderr := trainer(t, append([]string{"bench", "--config", tiny}, x.args...)...)
		if code == exitDone || !strings.Contains(stderr, x.want) {
			t.Errorf("%v: code %d, %s", x.args, code, stderr)
		}
	}
	fails(t, exitUsage, []string{"bench", "--inference", "--all"}, "--inference does not go with --all")
	fails(t, exitUsage, []string{"bench", "--inference", "--table", "docs"}, "--inference does not go with --table")
	fails(t, exitUsage, []string{"bench", "--table", "docs", "--seed", "1"}, "--table measures nothing")
	fails(t, exitUsage, []string{"bench", "--table", "docs", "--ranks", "1"}, "--table measures nothing")
}
