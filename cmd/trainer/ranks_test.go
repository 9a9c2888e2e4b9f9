package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/mpi"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// rankOf is what a rank of a command did.
type rankOf struct {
	code                 int
	stdout, stderr, warn bytes.Buffer
}

// onRanks runs a command line on n ranks of this process at once; args makes that of each.
func onRanks(t *testing.T, n int, args func(rank int) []string) []*rankOf {
	t.Helper()
	out := make([]*rankOf, n)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(n) {
		out[i] = new(rankOf)
		wg.Go(func() {
			r := out[i]
			r.code = execute(among(t.Context(), g, &r.warn), args(i), &r.stdout, &r.stderr)
		})
	}
	wg.Wait()
	return out
}

// TestOneVoice: rank 0 alone prints, and all end with one code: of a run, an evaluation, an embedding, a plan, and of
// errors that all meet or one of them.
func TestOneVoice(t *testing.T) {
	dir := t.TempDir()
	out, gallery := filepath.Join(dir, "run"), filepath.Join(dir, "gallery")
	texts := write(t, "texts.txt", "a red ring\na blue star\na cyan heart\n")
	all := func(args ...string) func(int) []string { return func(int) []string { return args } }
	for _, c := range []struct {
		name           string
		args           func(rank int) []string
		code           int
		stdout, stderr string
	}{
		{"train", all(tinyArgs(out, "--max-steps", "3")...), exitDone, "run folder: " + out, "step 3"},
		{"train on", all(tinyArgs(out, "--max-steps", "5")...), exitDone, "run folder: " + out, "going on from step 3"},
		{"eval", all("eval", "--checkpoint", out), exitDone, "retrieval on val: 12 images, 12 texts, step 5 of " + out, ""},
		{"probe", all("eval", "--checkpoint", out, "--task", "probe", "--json"), exitDone, `"task": "probe"`, ""},
		{"grounding", all("eval", "--checkpoint", out, "--task", "grounding", "--split", "val"), exitDone, "grounding", ""},
		{"embed", all("embed", "--checkpoint", out, "--out", gallery), exitDone, "12 images and 12 texts of 16 channels in " + gallery, ""},
		{"embed texts", all("embed", "--checkpoint", out, "--texts", texts, "--shard", "2", "--out", gallery+"-texts"), exitDone, "3 texts of 16 channels in 2 shards", ""},
		{"embed texts again", all("embed", "--checkpoint", out, "--texts", texts, "--shard", "2", "--out", gallery+"-texts"), exitDone, "0 made now", ""},
		{"embed, leaving out", all("embed", "--checkpoint", out, "--texts", texts, "--skip-bad", "--out", gallery+"-some"), exitDone, "3 texts of 16 channels in 1 shard", ""},
		{"plan", all(tinyArgs(filepath.Join(dir, "none"), "--dry-run")...), exitDone, "2 processes with 4 rows of each batch", ""},
		{"validate", all("validate", "--config", tiny), exitDone, "ok", ""},
		{"rows", all(tinyArgs(filepath.Join(dir, "none"), "--set", "train.batch_size=7")...), exitUsage, "", "train.batch_size: must be a multiple of the number of processes, 2 (got 7)"},
		{"usage", all("train", "--nonsense"), exitUsage, "", "unknown flag: --nonsense"},
		{"one process", all("inspect", out), exitUsage, "", "trainer inspect is done by one process, and 2 were started"},
		{"one process of data", all("data", "bench", "--config", tiny), exitUsage, "", "trainer data bench is done by one process, and 2 were started"},
		{"no checkpoint", all("eval", "--checkpoint", filepath.Join(dir, "none")), exitFailed, "", "no checkpoint at"},
		{"one rank", func(rank int) []string {
			return tinyArgs(filepath.Join(dir, "none"), "--set", fmt.Sprint("train.max_steps=", 5-6*rank))
		}, exitUsage, "", "trainer: rank 1: --set train.max_steps=-1: train.max_steps: must be >= 0"},
		{"other flags", func(rank int) []string {
			return tinyArgs(filepath.Join(dir, "none"), "--set", fmt.Sprint("optimizer.lr=0.", 1+rank))
		}, exitFailed, "", "trainer: rank 1 has another configuration than rank 0 ([optimizer] lr = 0.1 there, [optimizer] lr = 0.2 here)"},
	} {
		for i, r := range onRanks(t, 2, c.args) {
			if r.code != c.code {
				t.Errorf("%s: rank %d ends with %d, want %d: %s", c.name, i, r.code, c.code, r.stderr.String())
			}
			if i > 0 && r.stdout.Len()+r.stderr.Len()+r.warn.Len() > 0 {
				t.Errorf("%s: rank %d printed %q, %q and %q", c.name, i, r.stdout.String(), r.stderr.String(), r.warn.String())
			}
			if i == 0 && (!strings.Contains(r.stdout.String(), c.stdout) || !strings.Contains(r.stderr.String(), c.stderr)) {
				t.Errorf("%s: %q is not in\n%s\nor %q not in\n%s", c.name, c.stdout, r.stdout.String(), c.stderr, r.stderr.String())
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a run that was refused has a folder")
	}
	one := filepath.Join(dir, "one")
	must(t, exitDone, "embed", "--checkpoint", out, "--out", one)
	must(t, exitDone, "embed", "--checkpoint", out, "--texts", texts, "--shard", "2", "--out", one+"-texts")
	for _, f := range []string{"/features.safetensors", "/texts.jsonl", "-texts/texts-00000.safetensors", "-texts/texts-00001.jsonl"} {
		a, err1 := os.ReadFile(gallery + f)
		b, err2 := os.ReadFile(one + f)
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not that of one process: %v, %v", f, err1, err2)
		}
	}
	text, _ := must(t, exitDone, "eval", "--checkpoint", out)
	if r := onRanks(t, 3, all("eval", "--checkpoint", out)); r[0].stdout.String() != text {
		t.Errorf("three ranks evaluate to\n%s\none process to\n%s", r[0].stdout.String(), text)
	}
}

// gone is a group whose other ranks have ended.
type gone struct {
	parallel.Single
	rank    int
	aborted *int
}

var errGone = errors.New("rank 7 is gone")

func (g gone) Rank() int                                { return g.rank }
func (g gone) Size() int                                { return 8 }
func (g gone) GatherBytes([]byte) ([][]byte, error)     { return nil, errGone }
func (g gone) GatherInts(_, _ []int32) ([]int32, error) { return nil, errGone }
func (g gone) Abort(error)                              { *g.aborted++ }

// TestALostRankEndsAll: who finds that another one is gone says so with its number, and ends those that are left.
func TestALostRankEndsAll(t *testing.T) {
	for rank, want := range []string{"", "rank 1: trainer: rank 7 is gone\n"} {
		aborted := 0
		var stderr, warn bytes.Buffer
		code := execute(among(t.Context(), gone{rank: rank, aborted: &aborted}, &warn), []string{"validate", "--config", tiny}, io.Discard, &stderr)
		if code != exitFailed || aborted != 1 || warn.String() != want || strings.Contains(stderr.String(), "rank 7 is gone") != (rank == 0) {
			t.Errorf("rank %d: code %d, %d aborts, %q, %q", rank, code, aborted, stderr.String(), warn.String())
		}
	}
}

// TestARankFollows: a rank other than 0 says nothing of a signal and does not leave while nothing is to be saved,
// which rank 0 decides; a second signal ends it.
func TestARankFollows(t *testing.T) {
	var out bytes.Buffer
	signals, exits, stopped := make(chan os.Signal), make(chan int, 1), make(chan bool)
	w := watcher{stop: func() { close(stopped) }, exit: func(code int) { exits <- code }, out: &out, grace: 10 * time.Millisecond, follows: true}
	done := make(chan bool)
	go func() { w.watch(signals); close(done) }()
	signals <- syscall.SIGTERM
	<-stopped
	select {
	case code := <-exits:
		t.Errorf("left with %d", code)
	case <-time.After(100 * time.Millisecond):
	}
	signals <- syscall.SIGTERM
	if code := <-exits; code != exitInterrupted {
		t.Errorf("code %d", code)
	}
	close(signals)
	<-done
	if out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
}

func TestWithout(t *testing.T) {
	got := without([]string{"bench", "--ranks", "2", "--steps", "3", "--ranks=4"}, "--ranks")
	if !slices.Equal(got, []string{"bench", "--steps", "3"}) {
		t.Errorf("%q", got)
	}
}

// TestRanksFlag: without a launcher it says what to install, and within a group it is refused.
func TestRanksFlag(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	fails(t, exitFailed, []string{"bench", "--config", tiny, "--ranks", "2"}, "there is no mpirun or mpiexec in PATH: install Open MPI or MPICH")
	fails(t, exitUsage, []string{"bench", "--config", tiny, "--ranks", "0"}, "--ranks must be > 0 (got 0)")
	fails(t, exitUsage, []string{"validate", "--config", tiny, "--ranks", "3"}, "train.batch_size: must be a multiple of the number of processes, 3 (got 8)")
	for _, r := range onRanks(t, 2, func(int) []string { return []string{"bench", "--config", tiny, "--ranks", "2"} }) {
		if r.code != exitUsage {
			t.Errorf("code %d: %s", r.code, r.stderr.String())
		}
	}
}

// mpirun returns a command that runs a command line on n ranks, each a process.
func mpirun(t *testing.T, ctx context.Context, n int, args ...string) (c *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	path, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("there is no mpirun")
	}
	if info := mpi.Probe(); !info.Found {
		t.Skip("no MPI library: ", info.Reason)
	}
	flags, env := launcherFlags(ctx, path)
	c = exec.CommandContext(ctx, path, append(append(flags, "-n", strconv.Itoa(n), os.Args[0]), args...)...)
	session := check.Get(os.MkdirTemp("", "mpi"))(t) // else Open MPI has one of several that start at once fail
	t.Cleanup(func() { os.RemoveAll(session) })
	c.Env = append(append(os.Environ(), mainVariable+"=1", "XDG_CACHE_HOME="+t.TempDir(), "OMPI_MCA_orte_tmpdir_base="+session), env...)
	output = new(bytes.Buffer)
	c.Stdout, c.Stderr = output, output
	return c, output
}

// ranksRun runs a command line on n ranks, which must end with the exit code want.
func ranksRun(t *testing.T, n, want int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, output := mpirun(t, ctx, n, args...)
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != want {
		t.Fatalf("%d ranks of %q: %v, want exit code %d\n%s", n, args, err, want, output)
	}
	return output.String()
}

// TestProcesses trains on one process and on two, goes on with another number of them, and compares the losses.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	flags := []string{"--set", "train.log_every_steps=1", "--set", "schedule.kind=constant", "--set", "schedule.warmup_steps=2", "--set", "compute.threads=1", "--quiet"}
	args := func(out, steps string) []string { return tinyArgs(out, append(flags, "--max-steps", steps)...) }
	for _, stage := range []struct {
		ranks int
		steps string
	}{{2, "4"}, {1, "6"}, {2, "9"}} {
		ranksRun(t, stage.ranks, exitDone, args(two, stage.steps)...)
	}
	must(t, exitDone, args(one, "9")...)
	got, want := rows(t, two), rows(t, one)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, w := range want {
		if x, y := got[i].Values["loss"], w.Values["loss"]; got[i].Step != w.Step || !(math.Abs(x-y) <= 1e-4*math.Abs(y)) {
			t.Errorf("step %d: loss %v, want %v of step %d", got[i].Step, x, y, w.Step)
		}
	}
	if text := ranksRun(t, 2, exitUsage, tinyArgs(filepath.Join(dir, "none"), "--set", "train.batch_size=7")...); strings.Count(text, "train.batch_size: must be a multiple") != 1 {
		t.Errorf("not one message:\n%s", text)
	}
}

// childrenOf returns the processes whose parent is pid.
func childrenOf(pid int) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			list = append(list, child)
		}
	}
	return list
}

// alive says whether a process is there that has not ended.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// TestAKilledRankEndsAll within half a minute, not with 0, the newest checkpoint is whole, and the run goes on from
// it. A signal to the launcher saves first.
func TestAKilledRankEndsAll(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the processes in /proc")
	}
	dir := filepath.Join(t.TempDir(), "run")
	args := tinyArgs(dir, "--max-steps", "100000", "--set", "train.save_every_steps=3", "--set", "compute.threads=1", "--set", "train.eval_every_steps=0", "--set", "train.log_every_steps=1")
	for _, end := range []struct {
		name string
		stop func(launcher int, ranks []int) error
	}{
		{"kill", func(_ int, ranks []int) error { return syscall.Kill(ranks[len(ranks)-1], syscall.SIGKILL) }},
		{"kill rank 0", func(_ int, ranks []int) error { return syscall.Kill(ranks[0], syscall.SIGKILL) }},
		{"signal", func(launcher int, _ []int) error { return syscall.Kill(launcher, syscall.SIGTERM) }},
	} {
		before := lastRow(dir)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		c, output := mpirun(t, ctx, 2, args...)
		check.OK(t, c.Start())
		for lastRow(dir) < before+5 && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		ranks := childrenOf(c.Process.Pid)
		if len(ranks) < 2 {
			t.Fatalf("%s: processes %v\n%s", end.name, ranks, output)
		}
		slices.Sort(ranks)
		begin := time.Now()
		check.OK(t, end.stop(c.Process.Pid, ranks))
		err := c.Wait()
		if d := time.Since(begin); err == nil || d > 30*time.Second {
			t.Errorf("%s: ended after %v: %v\n%s", end.name, d, err, output)
		}
		for _, pid := range ranks {
			for until := time.Now().Add(5 * time.Second); alive(pid) && time.Now().Before(until); {
				time.Sleep(10 * time.Millisecond)
			}
			if alive(pid) {
				t.Errorf("%s: process %d is still there", end.name, pid)
			}
		}
		list, err := checkpoint.Verify(dir)
		if err != nil || len(list) == 0 || list[len(list)-1].Problem != "" {
			t.Fatalf("%s: checkpoints %+v: %v", end.name, list, err)
		}
		if end.name == "signal" {
			if saved, logged := newest(t, dir), lastRow(dir); saved != logged || !strings.Contains(output.String(), "trainer: interrupted and saved") ||
				strings.Count(output.String(), "stopping; what is not saved") != 1 {
				t.Errorf("saved at step %d, logged to %d\n%s", saved, logged, output)
			}
		}
	}
	at := newest(t, dir)
	for i, a := range args {
		if a == "100000" {
			args[i] = strconv.Itoa(at + 2)
		}
	}
	if text := ranksRun(t, 2, exitDone, args...); !strings.Contains(text, fmt.Sprintf("going on from step %d", at)) || lastRow(dir) != at+2 {
		t.Errorf("from step %d to %d\n%s", at, lastRow(dir), text)
	}
}
