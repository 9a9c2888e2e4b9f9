package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// armVariable holds the command line of a trainer for arm64: of an emulator and the program.
const armVariable = "GEOALIGN_ARM64"

// Three steps of scenes.toml have the losses on arm64 that they have on amd64 by AVX2, whose sums have the order of
// those by NEON.
func TestQuickstartOnARM64(t *testing.T) {
	command := strings.Fields(os.Getenv(armVariable))
	if len(command) == 0 {
		t.Skip(armVariable + " names no trainer for arm64: make arm sets it, where there is qemu-aarch64")
	}
	args := func(out string) []string {
		return append([]string{"train", "--config", filepath.Join("..", "..", "configs", "scenes.toml"), "--out", out, "--resume", "never", "--quiet"},
			sets("train.max_steps=3", "train.batch_size=8", "train.log_every_steps=1", "train.keep_best=0", "compute.threads=2", "queue.start_steps=1",
				"data.scenes.epoch_samples=64", "data.scenes.test_samples=32", "eval.batch_size=16")...)
	}
	here, there := filepath.Join(t.TempDir(), "amd64"), filepath.Join(t.TempDir(), "arm64")
	if code, _, stderr := spawn(t, []string{"GEOALIGN_CPU=avx2"}, args(here)...); code != exitDone {
		t.Fatalf("code %d\n%s", code, stderr)
	}
	run := exec.Command(command[0], append(command[1:], args(there)...)...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", run, err, out)
	}
	want, got := rows(t, here), rows(t, there)
	if len(want) != 3 || len(got) != len(want) {
		t.Fatalf("%d and %d rows, want 3", len(want), len(got))
	}
	for i := range want {
		for _, name := range []string{"loss", "grad_norm"} {
			a, b := want[i].Values[name], got[i].Values[name]
			t.Logf("step %d: %s %.7g on amd64, %.7g on arm64", i+1, name, a, b)
			if a == 0 || !(math.Abs(a-b) <= 1e-4) {
				t.Errorf("step %d: %s is %v on arm64 and %v on amd64", i+1, name, b, a)
			}
		}
	}
}
