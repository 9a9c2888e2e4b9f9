package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/internal/check"
)

// TestBenchAll measures a small configuration as all of them and sets the file beside a later one.
func TestBenchAll(t *testing.T) {
	quickPeak(t)
	configs, dir, d := allConfigs, allDir, productTime
	allConfigs, allDir, productTime = []string{"tiny"}, filepath.Dir(tiny), 0
	t.Cleanup(func() { allConfigs, allDir, productTime = configs, dir, d })
	file := filepath.Join(t.TempDir(), "machine.json")
	args := []string{"bench", "--all", "--steps", "1", "--warmup", "1"}
	stdout, _ := must(t, exitDone, append(args, "--save", file)...)
	contains(t, stdout, "tiny fp32", "samples/s", "start to first step of tiny")
	m := check.Get(bench.ReadMachine(file))(t)
	if !m.Complete || m.Date == "" || m.Software.GoVersion == "" || !strings.Contains(m.Source, "--all") {
		t.Errorf("got %+v", m)
	}
	code, stdout, stderr := trainer(t, append(args, "--compare", file, "--fail-below", "1000")...)
	if code != exitFailed || !strings.Contains(stderr, "slower than --fail-below 1000") {
		t.Errorf("code %d, %s", code, stderr)
	}
	contains(t, stdout, "now/before")
	text := check.Get(os.ReadFile(file))(t)
	named := strings.Replace(string(text), "{", `{"name": "mine",`, 1)
	check.OK(t, os.WriteFile(file, []byte(named), 0o644))
	must(t, exitDone, append(args, "--save", file)...)
	if m, err := bench.ReadMachine(file); err != nil || m.Name != "mine" {
		t.Errorf("measured anew the machine is called %q (%v)", m.Name, err)
	}
	renamed := strings.ReplaceAll(string(text), `"config": "tiny"`, `"config": "small"`)
	check.OK(t, os.WriteFile(file, []byte(renamed), 0o644))
	if code, _, stderr := trainer(t, append(args, "--compare", file, "--fail-below", "0.001")...); code != exitFailed || !strings.Contains(stderr, "--fail-below compares nothing") {
		t.Errorf("no step in common: code %d, %s", code, stderr)
	}
	other := strings.Replace(named, `"processor": "`, `"processor": "another `, 1)
	check.OK(t, os.WriteFile(file, []byte(other), 0o644))
	if code, _, stderr := trainer(t, append(args, "--compare", file)...); code != exitFailed || !strings.Contains(stderr, "another kind of machine") {
		t.Errorf("code %d, %s", code, stderr)
	}
	stdout, _ = must(t, exitDone, "bench", "--table", filepath.Dir(file))
	contains(t, stdout, "| tiny fp32 |", "another ", "| mine |")
	must(t, exitDone, append(args, "--save", file)...)
	if m, err := bench.ReadMachine(file); err != nil || m.Name != "" {
		t.Errorf("in place of another machine's file this one is called %q (%v)", m.Name, err)
	}
}

func TestBenchAllFlags(t *testing.T) {
	for _, args := range [][]string{{"--all", "--config", tiny}, {"--all", "--vary", "batch=4"}, {"--table", "x", "--all"}, {"--table", "x", "--save", "y"}} {
		if code, _, stderr := trainer(t, append([]string{"bench"}, args...)...); code != exitUsage || !strings.Contains(stderr, "goes with none of") {
			t.Errorf("%v: code %d, %s", args, code, stderr)
		}
	}
	old := allDir
	allDir = t.TempDir()
	t.Cleanup(func() { allDir = old })
	if code, _, stderr := trainer(t, "bench", "--all"); code == exitDone || !strings.Contains(stderr, "root of the repository") {
		t.Errorf("code %d, %s", code, stderr)
	}
}
