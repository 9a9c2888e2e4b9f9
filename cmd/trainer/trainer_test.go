package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// trainer runs one command line.
func trainer(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = execute(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// write puts a file into a temporary folder and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestExitCodes(t *testing.T) {
	good := write(t, "good.toml", "[train]\nmax_steps = 10\n")
	bad := write(t, "bad.toml", "[train]\nbatch_sise = 10\n")
	rows := []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--help"}, exitDone, ""},
		{[]string{"--version"}, exitDone, ""},
		{[]string{"validate", "--config", good}, exitDone, "note: schedule.warmup_steps (2000)"},
		{[]string{"validate", "--config", bad}, exitUsage, "bad.toml:2: train.batch_sise: unknown key; did you mean train.batch_size?\ntrainer: the configuration has 1 problem\n"},
		{[]string{"validate", "--config", good, "--set", "train.batch_size=-4"}, exitUsage, "train.batch_size: must be > 0 (got -4)"},
		{[]string{"validate", "--config", "none.toml"}, exitUsage, "none.toml"},
		{[]string{"validate", "extra"}, exitUsage, "Try: trainer validate --help\n"},
		{[]string{"validate", "--seed", "x"}, exitUsage, "--seed"},
		{[]string{"validate", "--confg", good}, exitUsage, "unknown flag: --confg"},
		{[]string{"valdate"}, exitUsage, "validate"},
		{[]string{"data", "preview", "--splt", "val"}, exitUsage, "Try: trainer data preview --help\n"},
		{[]string{"help", "valdate"}, exitUsage, `unknown command "valdate"`},
		{[]string{"help", "data", "stats"}, exitDone, ""},
		{[]string{"data"}, exitUsage, "needs one of"},
		{[]string{"data", "preveiw"}, exitUsage, `has no command "preveiw"`},
		{[]string{"inspect"}, exitUsage, "needs one PATH"},
		{[]string{"inspect", t.TempDir()}, exitFailed, "is not a file or folder that inspect reads: give a folder of one step"},
		{[]string{"doctor", "--backend", "cuda"}, exitUsage, `compute.backend: must be one of auto, builtin, plain (got "cuda")`},
		{[]string{"doctor", "--threads", "-1"}, exitUsage, "compute.threads: must be >= 0 (got -1)"},
	}
	for _, r := range rows {
		code, _, stderr := trainer(t, r.args...)
		if code != r.code || !strings.Contains(stderr, r.stderr) {
			t.Errorf("%q: code %d, want %d; stderr %q, want %q", r.args, code, r.code, stderr, r.stderr)
		}
		if code == exitDone && r.stderr == "" && stderr != "" {
			t.Errorf("%q wrote to stderr: %q", r.args, stderr)
		}
	}
}

func TestUnknownInstructionSet(t *testing.T) {
	t.Setenv("GEOALIGN_CPU", "sse4")
	for _, args := range [][]string{{"validate"}, {"data", "stats"}, {"doctor"}} {
		fails(t, exitUsage, args, `trainer: GEOALIGN_CPU: must be plain, avx2, avx512, amx or neon (got "sse4")`)
	}
}

// Every command explains itself with an example that starts with its own name.
func TestHelpTeaches(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		code, stdout, stderr := trainer(t, args...)
		if code != exitDone || stderr != "" || !strings.Contains(stdout, "Examples:\n  "+c.CommandPath()) {
			t.Errorf("%q: code %d, stderr %q, stdout %s", args, code, stderr, stdout)
		}
		if c.Short == "" {
			t.Errorf("%s has no summary", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	started := false
	visit(newRoot(&started))
}

func TestVersionNamesGo(t *testing.T) {
	_, stdout, _ := trainer(t, "--version")
	if !strings.HasPrefix(stdout, "trainer ") || !strings.Contains(stdout, "go1.") {
		t.Errorf("got %q", stdout)
	}
}

// parseJSON fails unless text is one JSON object and nothing else.
func parseJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if dec.More() {
		t.Fatalf("more than one value in %q", text)
	}
	return m
}

func TestValidateJSON(t *testing.T) {
	good := write(t, "good.toml", "[train]\nmax_steps = 10\n")
	code, stdout, stderr := trainer(t, "validate", "--config", good, "--json", "--seed", "7", "--out", "runs/x")
	m := parseJSON(t, stdout)
	run := m["config"].(map[string]any)["run"].(map[string]any)
	if code != exitDone || stderr != "" || m["valid"] != true || run["seed"] != 7.0 || run["out"] != "runs/x" {
		t.Errorf("code %d, stderr %q, stdout %s", code, stderr, stdout)
	}

	code, stdout, _ = trainer(t, "validate", "--config", good, "--json", "--set", "train.batch_sise=4", "--set", "momentum.m=2")
	m = parseJSON(t, stdout)
	problems := m["problems"].([]any)
	if code != exitUsage || m["valid"] != false || len(problems) != 2 {
		t.Fatalf("code %d, stdout %s", code, stdout)
	}
	first := problems[0].(map[string]any)
	if first["path"] != "train.batch_sise" || first["hint"] != "did you mean train.batch_size?" || first["where"] != "--set train.batch_sise=4" {
		t.Errorf("got %v", first)
	}
}

func TestValidatePrintCanBeLoaded(t *testing.T) {
	code, stdout, _ := trainer(t, "validate", "--print", "--set", "train.max_steps=5", "--set", "run.name=a")
	if code != exitDone {
		t.Fatalf("code %d", code)
	}
	cfg, err := config.Load(write(t, "config.toml", stdout), nil)
	if err != nil || cfg.Train.MaxSteps != 5 || cfg.Train.MaxEpochs != 0 || cfg.Run.Name != "a" {
		t.Errorf("%v %+v", err, cfg.Train)
	}
}

func TestQuietHidesNotes(t *testing.T) {
	code, stdout, stderr := trainer(t, "validate", "--quiet")
	if code != exitDone || stderr != "" || stdout != "defaults: ok\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestReportInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	err := fmt.Errorf("train: %w", context.Canceled)
	if code := report(ctx, "trainer train", err, &stderr); code != exitFailed {
		t.Errorf("not interrupted: code %d", code)
	}
	cancel()
	if code := report(ctx, "trainer train", err, &stderr); code != exitInterrupted {
		t.Errorf("interrupted: code %d", code)
	}
	if code := report(ctx, "trainer train", errors.New("disk full"), &stderr); code != exitFailed {
		t.Errorf("another error: code %d", code)
	}
}

// TestHelpSaysWhatHolds: what is read without --config depends on the command.
func TestHelpSaysWhatHolds(t *testing.T) {
	for _, command := range []string{"train", "validate", "bench"} {
		stdout, _ := must(t, exitDone, command, "--help")
		contains(t, stdout, "without it the defaults hold")
	}
	for _, command := range []string{"eval", "embed", "report", "finetune"} {
		stdout, _ := must(t, exitDone, command, "--help")
		contains(t, stdout, "without it the checkpoint's own holds")
	}
}
