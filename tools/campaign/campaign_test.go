package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// The campaigns in short: what they find in long ones is in docs/reliability.md.
func TestCampaigns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	bin := filepath.Join(t.TempDir(), "trainer")
	check.OK(t, (&campaign{bin: bin}).build())
	for _, short := range []struct {
		name  string
		n     int
		ranks int
		want  string
	}{
		{"kill", 3, 1, " 0 checkpoints lost, 0 failures"},
		{"kill", 2, 2, " 0 checkpoints lost, 0 failures"},
		{"damage", 4, 1, "4 damages read by map[embed:1 eval:1 finetune:1 train:1]: 0 failures"},
		{"damage-data", 42, 1, ": 0 failures"},
		{"disk", 2, 1, ": 0 failures"},
		{"memory", 2, 1, ": 0 failures"},
	} {
		t.Run(fmt.Sprintf("%s of %d", short.name, short.ranks), func(t *testing.T) {
			if campaigns[short.name] == nil {
				t.Skip("not on this system")
			}
			if _, err := exec.LookPath("mpirun"); short.ranks > 1 && err != nil {
				t.Skip("no mpirun: apt-get install openmpi-bin or mpich")
			}
			var out bytes.Buffer
			c := campaign{n: short.n, steps: 40, ranks: short.ranks, config: "run.toml", bin: bin, seed: 3, log: &out}
			err := c.run(short.name)
			if errors.Is(err, errMount) {
				t.Skip(err)
			}
			if err != nil || !strings.Contains(out.String(), short.want) {
				t.Errorf("%v\n%s", err, out.String())
			}
			t.Log(out.String())
		})
	}
}

// A soak tells a heap that grows from one that does not.
func TestSlope(t *testing.T) {
	for _, want := range []float64{0, 7} {
		var w watch
		for i := range 100 {
			x := float64(i) / 100
			w.hours = append(w.hours, x)
			w.heap = append(w.heap, 100+want*x+float64(i%2)) // half a byte up and down
		}
		if slope, err := w.slope(w.heap); slope < want-3*err || slope > want+3*err || err > 0.3 || err < 0.1 {
			t.Errorf("%v +- %v, want %v", slope, err, want)
		}
	}
}

// What a campaign looks for is seen where it is there.
func TestFailuresAreSeen(t *testing.T) {
	if !crashed("panic: x\n\ngoroutine 1 [running]:") || crashed("trainer: panic: no") {
		t.Error("a crash is told from an error by its goroutines")
	}
	if step, told := goneOnFrom("a\ngoing on from step 27 of run/checkpoints/step-00000027\n"); !told || step != 27 {
		t.Errorf("step %d, %v", step, told)
	}
	if _, err := newestWhole(t.TempDir(), 3); err == nil {
		t.Error("a checkpoint that is gone is not missed")
	}
	var f failures
	for i := range 12 {
		f.add("%d", i)
	}
	if err := f.err(); err == nil || !strings.HasPrefix(fmt.Sprint(err), "12 failures") {
		t.Error(err)
	}
}
