package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// soakVariable is the number of signals that TestSignalsAtRandomTimes sends.
const soakVariable = "GEOALIGN_SIGNALS"

// TestSignalsAtRandomTimes ends a run of two micro-batches a step, with graphs that are
// rebuilt in the step or beside it, evaluations with re-ranking and saves, by SIGTERM at
// random times, and starts it again each time. It ends with the bits and the log of one that
// was left alone, and every end takes less than two seconds. It takes minutes:
//
//	GEOALIGN_SIGNALS=100 go test ./cmd/trainer -run TestSignalsAtRandomTimes -v -timeout 1h
func TestSignalsAtRandomTimes(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(soakVariable))
	if err != nil || n < 1 {
		t.Skipf("set %s to the number of signals", soakVariable)
	}
	bin := binary(t)
	for name, set := range map[string][]string{"in the step": nil, "beside the steps": beside} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
			args := func(out string) []string {
				return geodesicArgs(out, append(set, "--quiet", "--max-steps", strconv.Itoa(6*n), "--set", "train.batch_size=4", "--set", "train.accumulate_steps=2",
					"--set", "train.save_every_steps=7", "--set", "eval.rerank_top=12")...)
			}
			must(t, exitDone, args(whole)...)
			r := rand.New(rand.NewPCG(uint64(n), 0))
			var longest time.Duration
			sent, codes := 0, map[int]int{}
			for sent < n {
				var out bytes.Buffer
				cmd := exec.Command(bin, args(parts)...)
				cmd.Stdout, cmd.Stderr = &out, &out
				check.OK(t, cmd.Start())
				time.Sleep(50*time.Millisecond + time.Duration(r.IntN(2000))*time.Millisecond)
				sent++
				begin := time.Now()
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Logf("signal %d: %v", sent, err)
				}
				cmd.Wait()
				took := time.Since(begin)
				longest = max(longest, took)
				code := cmd.ProcessState.ExitCode()
				codes[code]++
				if code != exitInterrupted && code != exitDone {
					t.Logf("signal %d: exit code %d: %s", sent, code, out.String())
				}
				if took > 2*time.Second {
					t.Errorf("signal %d: %v to the end: %s", sent, took, out.String())
				}
			}
			t.Logf("%d signals to step %d, longest time to the end %v, exit codes %v", sent, lastRow(parts), longest, codes)
			must(t, exitDone, args(parts)...)
			sameRun(t, parts, whole)
		})
	}
}
