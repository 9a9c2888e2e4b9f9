package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	inside "github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// newest returns the step of the newest checkpoint of a run.
func newest(t *testing.T, dir string) int {
	t.Helper()
	c := check.Get(checkpoint.Load(dir))(t)
	defer c.Close()
	return c.Step
}

// swap puts a picture that cannot be decoded instead of one, and returns what puts it back.
func swap(t *testing.T, path string) (back func()) {
	t.Helper()
	good := check.Get(os.ReadFile(path))(t)
	put := func(b []byte) {
		check.OK(t, os.WriteFile(path, b, 0o666))
	}
	put(good[:len(good)/2])
	return func() { put(good) }
}

// rarely saves at the end alone, so that a checkpoint from before is one of a run that ended early.
var rarely = []string{"--set", "train.save_every_steps=0", "--set", "train.log_every_steps=1"}

// An evaluation that fails, and data of which too much is bad, end the run with its newest
// step saved; mended, and accepted as changed, it goes on from there and ends like one that met nothing.
func TestFailuresSaveFirst(t *testing.T) {
	dir, flags := photoData(t)
	args := func(out string) []string {
		return tinyArgs(out, append(append(flags, rarely...), "--set", "train.batch_size=4", "--set", "data.prefetch=1", "--set", "train.eval_every_steps=6", "--max-steps", "8", "--set", "data.max_bad_share=0", "--set", "data.changed=accept")...)
	}
	whole := filepath.Join(dir, "whole")
	must(t, exitDone, args(whole)...)
	for _, c := range []struct {
		name, file, message string
		step                int
	}{
		{"evaluation", "val/003.png", "evaluation after step 6", 6},
		{"data", "train/015.png", "data.max_bad_share", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(dir, c.name)
			back := swap(t, filepath.Join(dir, c.file))
			stderr := fails(t, exitFailed, args(out), c.message)
			back()
			step := newest(t, out)
			if c.step >= 0 && step != c.step || step < 1 {
				t.Errorf("saved at step %d\n%s", step, stderr)
			}
			if lastRow(out) != step {
				t.Errorf("saved at step %d, logged to step %d", step, lastRow(out))
			}
			must(t, exitDone, args(out)...)
			sameRun(t, out, whole)
		})
	}
}

// A file of the evaluation that is not there is told before the first step.
func TestMissingEvaluationFiles(t *testing.T) {
	dir, flags := photoData(t)
	for _, name := range []string{"003", "007"} {
		check.OK(t, os.Remove(filepath.Join(dir, "val", name+".png")))
	}
	out := filepath.Join(dir, "out")
	fails(t, exitFailed, tinyArgs(out, flags...), `eval.split "val"`, "2 of 10 image files cannot be read", "val/003.png", "val/007.png", "data.root")
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a run folder")
	}
	must(t, exitDone, tinyArgs(out, append(flags, "--quiet", "--max-steps", "1", "--set", "train.batch_size=4", "--set", "eval.split=test")...)...)
}

// A run that is asked to stop by a signal, or whose messages nobody reads any more, saves and
// ends; of SIGHUP it takes no notice where nohup said so.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	// Under nohup the processes that this one starts would ignore SIGHUP, unless it has a handler.
	handler := make(chan os.Signal, 1)
	signal.Notify(handler, syscall.SIGHUP)
	defer signal.Stop(handler)
	bin := binary(t)
	long := append([]string{"--max-steps", "100000", "--set", "train.eval_every_steps=5"}, rarely...) // each evaluation is told
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{
		{"SIGTERM", syscall.SIGTERM, exitInterrupted}, {"SIGHUP", syscall.SIGHUP, exitInterrupted}, {"closed pipe", 0, exitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(bin, tinyArgs(dir, long...)...)
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			check.OK(t, cmd.Start())
			var said bytes.Buffer
			r := bufio.NewReader(io.TeeReader(stderr, &said))
			for line := ""; err == nil && !strings.HasPrefix(line, "step "); line, err = r.ReadString('\n') {
			}
			if c.signal == 0 {
				stderr.Close() // the next message is for nobody
			} else if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			} else {
				io.Copy(io.Discard, r)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, said.String())
			}
			if c.signal != 0 {
				contains(t, said.String(), "trainer: stopping", "interrupted and saved")
			}
			if step := newest(t, dir); step < 1 || step != lastRow(dir) {
				t.Errorf("saved at step %d, logged to step %d", step, lastRow(dir))
			}
		})
	}
}

// Started by nohup a run outlives its terminal.
func TestHangupIsIgnoredUnderNohup(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	bin := binary(t)
	dir := t.TempDir()
	args := append([]string{"-c", `trap "" HUP; exec "$0" "$@"`, bin}, tinyArgs(dir, "--set", "train.log_every_steps=1")...)
	cmd := exec.Command("sh", args...)
	check.OK(t, cmd.Start())
	for limit := time.Now().Add(time.Minute); lastRow(dir) < 1 && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Logf("the run had ended: %v", err)
	}
	if err := cmd.Wait(); err != nil || newest(t, dir) != 20 {
		t.Errorf("%v, saved at step %d", err, newest(t, dir))
	}
}

// watched runs a watcher whose exit codes come out of the channel.
func watched(out io.Writer) (signals chan os.Signal, stopped chan struct{}, exits chan int) {
	signals, stopped, exits = make(chan os.Signal), make(chan struct{}), make(chan int, 1)
	w := watcher{stop: func() { close(stopped) }, exit: func(code int) { exits <- code }, out: out, grace: 20 * time.Millisecond}
	go w.watch(signals)
	return signals, stopped, exits
}

func TestSecondSignalAborts(t *testing.T) {
	defer inside.Hold()() // else the watcher would not wait for it
	signals, stopped, exits := watched(io.Discard)
	signals <- os.Interrupt
	<-stopped
	select {
	case code := <-exits:
		t.Fatalf("exit %d after the first signal", code)
	default:
	}
	signals <- os.Interrupt
	if code := <-exits; code != exitInterrupted {
		t.Errorf("exit %d", code)
	}
}

// A command that hangs is left once there is nothing to save, also where its messages are
// not read.
func TestHangingCommandIsLeft(t *testing.T) {
	unread, w := io.Pipe() // a write never ends
	defer unread.Close()
	release := inside.Hold()
	signals, stopped, exits := watched(w)
	signals <- syscall.SIGTERM
	<-stopped
	select {
	case code := <-exits:
		t.Fatalf("exit %d with something to save", code)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	if code := <-exits; code != exitInterrupted {
		t.Errorf("exit %d", code)
	}
}
