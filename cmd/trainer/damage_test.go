package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// zeroed puts zeros into the middle of a file.
func zeroed(t *testing.T, path string) {
	t.Helper()
	b := check.Get(os.ReadFile(path))(t)
	clear(b[len(b)/2:][:min(len(b)/4, 32<<10)])
	check.OK(t, os.WriteFile(path, b, 0o666))
}

// Zeros in the parameters of the newest checkpoint: every command takes the one before and
// says so, and inspect --verify names the file.
func TestDamageIsToldByAllCommands(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	must(t, exitDone, tinyArgs(base, "--quiet", "--max-steps", "8", "--set", "train.save_every_steps=4", "--set", "train.keep_last=5")...)
	newest := filepath.Join(base, "checkpoints", checkpointName(8))
	stdout, _ := must(t, exitDone, "inspect", base, "--verify")
	contains(t, stdout, checkpointName(4)+"  whole", checkpointName(8)+"  whole", "momentum.safetensors")

	model := filepath.Join(newest, "model.safetensors")
	zeroed(t, model)
	told := []string{newest + " is damaged: model.safetensors has checksum ", "taking the newest complete checkpoint before it, step 4"}
	for _, args := range [][]string{
		{"eval", "--checkpoint", base},
		{"embed", "--checkpoint", base, "--out", filepath.Join(dir, "features")},
		{"report", base, "--out", filepath.Join(dir, "page.html")},
		{"finetune", "--checkpoint", base, "--out", filepath.Join(dir, "tuned"), "--max-steps", "1"},
		tinyArgs(filepath.Join(dir, "other"), "--resume", base, "--max-steps", "8"),
		tinyArgs(base, "--max-steps", "8"),
	} {
		if args[0] == "train" && args[4] == base {
			stdout := fails(t, exitFailed, []string{"inspect", base, "--verify"}, "1 of 2 checkpoints damaged: "+newest, "model.safetensors has checksum ")
			if strings.Contains(stdout, checkpointName(4)+" is damaged") {
				t.Errorf("the one before is called damaged: %s", stdout)
			}
			out, _ := must(t, exitFailed, "inspect", base, "--verify", "--json")
			contains(t, out, `"damaged": 1`, `"problem": "has checksum `)
			fails(t, exitFailed, []string{"eval", "--checkpoint", newest}, "is damaged: model.safetensors has checksum ")
		}
		_, stderr := must(t, exitDone, args...)
		contains(t, stderr, told...)
	}
	must(t, exitDone, "inspect", base, "--verify") // the run made step 8 again
}

// While a run saves and prunes all the time, readers always find a whole checkpoint and a
// second run is told of the first. The test of this name in train/checkpoint sees many more
// saves.
func TestReadersBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, "--quiet", "--max-steps", "1000000", "--set", "schedule.kind=constant", "--set", "train.save_every_steps=1",
		"--set", "train.keep_last=1", "--set", "train.keep_best=0", "--set", "train.keep_every_steps=0", "--set", "train.eval_every_steps=0", "--set", "train.log_every_steps=1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out bytes.Buffer
	go func() { ended <- execute(ctx, args, io.Discard, &out) }()
	for lastRow(dir) < 3 {
		select {
		case code := <-ended:
			t.Fatalf("the run ended with %d: %s", code, out.String())
		case <-time.After(time.Millisecond):
		}
	}
	first := lastRow(dir)
	for range 4 {
		for _, reader := range [][]string{
			{"inspect", dir},
			{"inspect", dir, "--verify"},
			{"eval", "--checkpoint", dir, "--quiet"},
			{"embed", "--checkpoint", dir, "--quiet", "--out", filepath.Join(t.TempDir(), "features")},
			{"report", dir, "--quiet", "--out", filepath.Join(t.TempDir(), "page.html")},
		} {
			code, _, stderr := trainer(t, reader...)
			if code != exitDone || strings.Contains(stderr, "cannot be used") {
				t.Errorf("%q: code %d: %s", reader, code, stderr)
			}
		}
		fails(t, exitFailed, args, "another process writes to "+dir+" (process ")
	}
	last := lastRow(dir)
	cancel()
	if code := <-ended; code != exitInterrupted || last == first {
		t.Errorf("the run ended with %d after steps %d to %d: %s", code, first, last, out.String())
	}
}
