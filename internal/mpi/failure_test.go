//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFailures: whatever happens to one rank, all end soon, with an error that says why.
func TestFailures(t *testing.T) {
	rows := []struct {
		scenario, timeout string
		want              []string // in what is written
	}{
		// A rank that is late in the exchange of notes, while a sum is under way that nobody waits for, and never.
		{"late", "1s", []string{"rank 0 of ", "has waited 1s for the others at update 12, in a question to all", "nothing has come of rank 1"}},
		{"late begun", "1m", []string{"rank 0 of ", "at epoch 3, in a sum of 1000000 values"}},
		{"dies", "1m", nil},
		{"gives up", "1m", []string{"rank 1 of ", "ends all processes: no more images"}},
		{"gives up while others wait", "1m", []string{"rank 0 of ", "ends all processes: no more images"}},
		{"panics", "1m", []string{"panic: a defect"}},
		{"differs", "1m", []string{"rank 0 is in a sum of 3 values (exchange 4), and rank 1 in a gathering of values, 8 bytes (exchange 4)"}},
		{"differs in length", "1m", []string{"in a sum of 3 values ", "in a sum of 4 values ", "the same program"}},
	}
	for _, mpirun := range mpiruns(t) {
		for _, r := range rows {
			t.Run(mpirun[strings.LastIndexByte(mpirun, '/')+1:]+" "+r.scenario, func(t *testing.T) {
				t.Parallel()
				o := ranks(t, mpirun, 3, r.scenario, timeoutVariable+"="+r.timeout)
				if o.err == nil || o.took > 20*time.Second {
					t.Errorf("%v after %v:\n%s", o.err, o.took, o.output)
				}
				for _, w := range r.want {
					if !strings.Contains(o.output, w) {
						t.Errorf("%q is missing in\n%s", w, o.output)
					}
				}
				if strings.Contains(o.output, survived) {
					t.Errorf("a rank went on:\n%s", o.output)
				}
			})
		}
	}
}

// survived is what a rank writes that was not ended.
const survived = "this rank is still alive"

// outlive stays for longer than the others may take.
func outlive() error {
	time.Sleep(30 * time.Second)
	fmt.Println(survived)
	return nil
}

func init() {
	scenarios["late"] = func(w *World) error {
		w.At("update", 12)
		if w.rank == 1 {
			return outlive()
		}
		if w.rank == 2 { // so that rank 0 is the one that ends them
			time.Sleep(500 * time.Millisecond)
		}
		_, err := w.All(true)
		return errors.Join(err, errors.New(survived))
	}
	scenarios["late begun"] = func(w *World) error {
		w.At("epoch", 3)
		w.SetTimeout(time.Second)
		if w.rank > 0 {
			return outlive()
		}
		w.Begin(make([]float32, 1e6))
		return outlive()
	}
	scenarios["dies"] = func(w *World) error {
		if _, err := w.All(true); err != nil {
			return err
		}
		if w.rank == 1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		for x := make([]float32, 1e6); ; {
			if err := w.Sum(x); err != nil {
				return outlive()
			}
		}
	}
	scenarios["gives up"] = func(w *World) error {
		if w.rank == 1 {
			w.Abort(errors.New("no more images"))
		}
		return outlive()
	}
	scenarios["gives up while others wait"] = func(w *World) error {
		if w.rank == 0 {
			go func() {
				time.Sleep(200 * time.Millisecond)
				w.Abort(errors.New("no more images"))
			}()
		}
		if w.rank != 1 {
			err := w.Sum(make([]float32, 1e6))
			return errors.Join(err, errors.New(survived))
		}
		return outlive()
	}
	scenarios["panics"] = func(w *World) error {
		if w.rank == 1 {
			panic("a defect")
		}
		_, err := w.All(true)
		return errors.Join(err, errors.New(survived))
	}
	scenarios["differs"] = func(w *World) error {
		for range 2 {
			if _, err := w.All(true); err != nil {
				return err
			}
		}
		var err error
		if w.rank != 1 {
			err = w.Sum(make([]float32, 3))
		} else {
			_, err = w.Gather(nil, make([]float32, 2))
		}
		return stuck(w, err)
	}
	scenarios["differs in length"] = func(w *World) error {
		w.Begin(make([]float32, 3+w.rank))
		return stuck(w, w.Wait())
	}
}

// stuck checks that after an error nothing goes on and that it is the same one always. It gives
// other ranks the time to say it too.
func stuck(w *World, err error) error {
	if err == nil {
		return errors.New(survived)
	}
	if _, again := w.All(true); !errors.Is(again, err) {
		fmt.Println(survived, again)
	}
	if again := w.Close(); !errors.Is(again, err) {
		fmt.Println(survived, again)
	}
	time.Sleep(time.Duration(w.rank) * 300 * time.Millisecond)
	return err
}
