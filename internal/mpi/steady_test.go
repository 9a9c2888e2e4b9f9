//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
)

// TestSteady: exchanges allocate nothing once the slices that they fill are there.
func TestSteady(t *testing.T) {
	for _, mpirun := range mpiruns(t) {
		if o := ranks(t, mpirun, 2, "steady"); o.err != nil {
			t.Errorf("%s: %v:\n%s", mpirun, o.err, o.output)
		}
	}
}

// TestSignals: a signal that comes after the start of MPI does not end the program, and a fault in
// Go is a panic as before.
func TestSignals(t *testing.T) {
	for _, mpirun := range mpiruns(t) {
		if o := ranks(t, mpirun, 2, "signals"); o.err != nil {
			t.Errorf("%s: %v:\n%s", mpirun, o.err, o.output)
		}
	}
}

// TestOtherLauncher: a launcher of several processes that the library knows nothing of is an error that says so.
func TestOtherLauncher(t *testing.T) {
	mpiruns(t) // skips where there is no MPI
	self := check.Get(os.Executable())(t)
	// What srun --mpi=none tells, to a process of its own.
	c := exec.Command(self)
	c.Env = append(os.Environ(), scenarioVariable+"=steady", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2")
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "srun has started 2 processes, but ") ||
		!strings.Contains(string(out), "--mpi=pmix") {
		t.Errorf("%v: %s", err, out)
	}
}

func init() {
	scenarios["steady"] = steady
	scenarios["signals"] = signals
}

func steady(w *World) error {
	debug.SetGCPercent(-1) // which empties the pools of the standard library
	x, own, ints := make([]float32, 300001), make([]float32, 100), make([]int32, 100)
	floats, numbers := make([]float32, 0, 1000), make([]int32, 0, 1000)
	var err error
	step := func() {
		w.Begin(x)
		_, err1 := w.All(true)
		err2 := w.Sum(own)
		err3 := w.SumShare(own, x[:100*w.ranks])
		_, err4 := w.Gather(floats, own)
		_, err5 := w.GatherInts(numbers, ints)
		w.At("update", 1)
		if e := w.Wait(); e != nil || err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil {
			err = errors.Join(e, err1, err2, err3, err4, err5)
		}
	}
	for _, wire := range []string{"fp32", "bf16"} {
		if err := w.SetWire(wire); err != nil {
			return err
		}
		for range 10 {
			step()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const steps = 50
		for range steps {
			step()
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > steps/2 && !allocs.Race { // the runtime's own threads have some
			return fmt.Errorf("%d allocations in %d steps in %s", n, steps, wire)
		}
	}
	return err
}

func signals(w *World) error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	x := make([]float32, 1e6)
	for range 20 {
		w.Begin(x)
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			return err
		}
		select {
		case <-c:
		case <-time.After(5 * time.Second):
			return errors.New("the signal did not come")
		}
		if err := w.Wait(); err != nil {
			return err
		}
	}
	if !faults(nil) {
		return errors.New("no panic")
	}
	return nil
}

// faults reports whether reading through p is a panic.
func faults(p *int) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	return *p == 0
}
