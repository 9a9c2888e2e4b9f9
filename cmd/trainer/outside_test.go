//go:build unix

package main

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// kills is how many exports, embeds and imports TestKilledWritersLeaveNothing kills.
var kills = flag.Int("kills", 2, "processes that TestKilledWritersLeaveNothing kills of each kind")

// TestOneWriterWithoutLocks: where the file system has no locks, or lies about them, a second process does not train
// into the folder of a first, is told who has it, and takes over at once when that one was killed. The run ends with
// the bits of one that was left alone.
func TestOneWriterWithoutLocks(t *testing.T) {
	bin := binary(t)
	whole := filepath.Join(t.TempDir(), "whole")
	args := func(out string) []string {
		return tinyArgs(out, "--set", "train.log_every_steps=1", "--set", "train.save_every_steps=3", "--max-steps", "40")
	}
	must(t, exitDone, append(args(whole), "--quiet")...)
	for _, how := range []string{files.FlockFails, files.FlockLies} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(flockVariable, how)
			dir := filepath.Join(t.TempDir(), "run")
			first := exec.Command(bin, args(dir)...)
			var said bytes.Buffer
			first.Stderr = &said
			check.OK(t, first.Start())
			for limit := time.Now().Add(time.Minute); lastRow(dir) < 4 && time.Now().Before(limit); {
				time.Sleep(time.Millisecond)
			}
			if err := first.Process.Signal(syscall.SIGSTOP); err != nil { // it holds the folder for as long as the second looks
				t.Fatal(err)
			}
			code, _, stderr := spawn(t, []string{flockVariable + "=" + how}, args(dir)...)
			if code != exitFailed {
				t.Errorf("a second process: code %d: %s", code, stderr)
			}
			contains(t, stderr, "another process writes to "+dir, "(process ", " since ", ": wait for it, or choose another folder with --out")
			check.OK(t, first.Process.Kill())
			_ = first.Wait()
			contains(t, said.String(), "note: the file system of "+dir+" has no locks: "+filepath.Join(dir, files.OwnerFile)+" says who writes there")
			if code, _, stderr := spawn(t, []string{flockVariable + "=" + how}, args(dir)...); code != exitDone {
				t.Errorf("after a kill: code %d: %s", code, stderr)
			}
			sameRun(t, dir, whole)
			if _, err := os.Stat(filepath.Join(dir, files.OwnerFile)); err == nil {
				t.Error("the owner file is left")
			}
		})
	}
}

// TestKilledWritersLeaveNothing kills exports, embeds, imports, averages and merges at random moments. The next one
// of the same command succeeds and nothing hidden is left, neither beside the folder nor in it. -kills kills more.
func TestKilledWritersLeaveNothing(t *testing.T) {
	bin := binary(t)
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	must(t, exitDone, tinyArgs(run, "--quiet", "--max-steps", "4", "--set", "train.save_every_steps=2")...)
	texts := filepath.Join(dir, "texts.txt")
	check.OK(t, os.WriteFile(texts, []byte(strings.Repeat("a red circle\na blue square\n", 400)), 0o666))
	for name, args := range map[string][]string{
		"export":  {"export", "--checkpoint", run, "--to", "geoalign"},
		"embed":   {"embed", "--checkpoint", run, "--texts", texts, "--shard", "50"},
		"split":   {"embed", "--checkpoint", run, "--split", "test"},
		"import":  {"import", "--from", weightstest.Stored(t, "clip"), "--set", "compute.backend=builtin"},
		"average": {"average", "--checkpoint", run, "--last", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(name)), 46))
			place := t.TempDir()
			out := filepath.Join(place, "out")
			args := append(args, "--out", out)
			if msg, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, msg)
			}
			killed, within := 0, 0
			for tries := 0; killed < *kills && tries < 10**kills; tries++ {
				check.OK(t, os.RemoveAll(out))
				cmd := exec.Command(bin, args...)
				check.OK(t, cmd.Start())
				// While something hidden is there, or soon after it went.
				for limit := time.Now().Add(30 * time.Second); len(hidden(t, place)) == 0 && time.Now().Before(limit) && process.Alive(cmd.Process.Pid, ""); {
					time.Sleep(50 * time.Microsecond)
				}
				time.Sleep(time.Duration(r.IntN(5000)) * time.Microsecond)
				_ = cmd.Process.Kill()
				if cmd.Wait(); cmd.ProcessState.ExitCode() == exitDone {
					continue // it was faster
				}
				killed++
				if len(hidden(t, place)) > 0 {
					within++
				}
				if msg, err := exec.Command(bin, args...).CombinedOutput(); err != nil && !bytes.Contains(msg, []byte("holds a run already")) && !bytes.Contains(msg, []byte("is not empty")) {
					t.Errorf("after a kill: %v: %s", err, msg)
				}
				if left := hidden(t, place); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			}
			t.Logf("%d kills, %d of which left something", killed, within)
			if killed == 0 {
				t.Error("nothing was killed")
			}
		})
	}
}

// hidden lists what begins with a dot below a folder.
func hidden(t *testing.T, dir string) (list []string) {
	t.Helper()
	check.OK(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != dir && strings.HasPrefix(d.Name(), ".") {
			list = append(list, path)
		}
		return nil
	}))
	return list
}
