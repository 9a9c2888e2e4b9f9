package main

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/checkpoint/checkpointtest"
)

// A run that is interrupted at several steps, also in the middle of an epoch, ends
// with the same bits and the same log as one that is left alone.
func TestInterruptedRunsEndTheSame(t *testing.T) {
	rows := []struct {
		name string
		set  []string
		at   []int
	}{
		{"every row", []string{"--set", "train.log_every_steps=1"}, []int{2, 6, 9, 15}},
		{"some rows", []string{"--set", "train.log_every_steps=5"}, []int{1, 6, 12}},
		{"two micro-batches", []string{"--set", "train.accumulate_steps=2", "--set", "train.batch_size=4", "--max-steps", "12"}, []int{3, 7}},
	}
	if testing.Short() {
		rows = rows[:1]
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			dir := t.TempDir()
			whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
			must(t, exitDone, tinyArgs(whole, append(r.set, "--quiet")...)...)
			stops := 0
			for _, step := range r.at {
				if interrupted(t, parts, step, tinyArgs(parts, r.set...)...) == exitInterrupted {
					stops++
				}
			}
			if stops == 0 {
				t.Error("no run was interrupted")
			}
			must(t, exitDone, tinyArgs(parts, append(r.set, "--quiet")...)...)
			sameRun(t, parts, whole)
		})
	}
}

// binary returns the path of the program: the test binary, which is the program in
// the processes that the test starts from now on.
func binary(t *testing.T) string {
	t.Helper()
	t.Setenv(mainVariable, "1")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return os.Args[0]
}

// A process that is killed without warning at three random moments ends, when it is
// started again each time, with the same bits and the same log.
func TestKilledRunsEndTheSame(t *testing.T) {
	bin := binary(t)
	logged := func(dir string, more ...string) []string {
		return tinyArgs(dir, append(more, "--set", "train.log_every_steps=1")...)
	}
	graphs := func(dir string, more ...string) []string { return geodesicArgs(dir, append(more, beside...)...) }
	for seed, args := range []func(dir string, more ...string) []string{logged, logged, graphs} {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			dir := t.TempDir()
			whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
			must(t, exitDone, args(whole, "--quiet")...)
			r := rand.New(rand.NewPCG(uint64(seed), 0))
			for _, from := range []int{0, 6, 12} {
				killed(t, bin, args(parts), parts, from+r.IntN(6), time.Duration(r.IntN(30_000))*time.Microsecond)
			}
			must(t, exitDone, args(parts, "--quiet")...)
			sameRun(t, parts, whole)
		})
	}
}

// killed starts the program with args, which train into dir, and kills it some time
// after it logged a step.
func killed(t *testing.T, bin string, args []string, dir string, step int, wait time.Duration) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	check.OK(t, cmd.Start())
	for limit := time.Now().Add(30 * time.Second); lastRow(dir) < step && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(wait)
	if err := cmd.Process.Kill(); err != nil {
		t.Logf("the run ended before the kill: %v", err)
	}
	if err := cmd.Wait(); err == nil {
		t.Logf("the run ended before the kill: %s", out.String())
	}
	t.Logf("killed after step %d and %v, metrics to step %d", step, wait, lastRow(dir))
}

// A disk without room for a checkpoint stops the run with a clear error and leaves
// the earlier checkpoint, from which it goes on once there is room. A limit on the
// size of files stands in for the disk.
func TestFullDiskKeepsEarlierCheckpoints(t *testing.T) {
	bin := binary(t)
	dir := t.TempDir()
	whole, full := filepath.Join(dir, "whole"), filepath.Join(dir, "full")
	must(t, exitDone, tinyArgs(whole, "--quiet")...)
	if interrupted(t, full, 4, tinyArgs(full)...) != exitInterrupted {
		t.Fatal("the run was not interrupted")
	}
	folder := filepath.Join(full, "checkpoints")
	before, list := tensorFiles(t, full), names(t, folder)
	args := append([]string{"-c", `ulimit -f 64; exec "$0" "$@"`, bin}, tinyArgs(full)...)
	out, err := exec.Command("sh", args...).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != exitFailed {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, string(out), "checkpoint: save step ", "file too large", "earlier checkpoints are untouched")
	for g, b := range tensorFiles(t, full) {
		if !bytes.Equal(b, before[g]) {
			t.Errorf("%s of the earlier checkpoint changed", g)
		}
	}
	if left := names(t, folder); !slices.Equal(left, list) {
		t.Errorf("left in the folder: %v, before: %v", left, list)
	}
	must(t, exitDone, tinyArgs(full, "--quiet")...)
	sameRun(t, full, whole)
}

// A row of the last step that a kill kept from the log is written on resume, with
// the evaluation that belongs to it.
func TestResumeCompletesTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("three whole runs")
	}
	dir := t.TempDir()
	whole, cut := filepath.Join(dir, "whole"), filepath.Join(dir, "cut")
	must(t, exitDone, tinyArgs(whole, "--quiet")...)
	must(t, exitDone, tinyArgs(cut, "--quiet", "--set", "train.keep_last=0")...)
	check.OK(t, os.WriteFile(filepath.Join(cut, "checkpoints", "latest"), []byte("step-00000012\n"), 0o666))
	path := filepath.Join(cut, "metrics.jsonl")
	text := check.Get(os.ReadFile(path))(t)
	check.OK(t, os.WriteFile(path, text[:bytes.Index(text, []byte(`{"step":12`))+7], 0o666))
	must(t, exitDone, tinyArgs(cut, "--quiet", "--set", "train.keep_last=0")...)
	sameRun(t, cut, whole)
}

// A newest checkpoint that is damaged is told and passed over; the run goes on from
// the one before and ends the same.
func TestDamagedCheckpointIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	must(t, exitDone, tinyArgs(whole, "--quiet")...)
	if interrupted(t, parts, 8, tinyArgs(parts)...) != exitInterrupted {
		t.Fatal("the run was not interrupted")
	}
	newest := check.Get(checkpoint.Load(parts))(t)
	newest.Close()
	check.OK(t, os.Truncate(filepath.Join(newest.Path, "optimizer.safetensors"), 1000))
	fails(t, exitFailed, []string{"eval", "--checkpoint", newest.Path}, "is damaged: optimizer.safetensors has 1000 bytes, want ")
	_, stderr := must(t, exitDone, tinyArgs(parts)...)
	contains(t, stderr, "taking the newest complete checkpoint", "going on from step ")
	sameRun(t, parts, whole)
}

// Of the checkpoints the last, the best by the mean of recalls and every eighth stay.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--set", "train.eval_every_steps=4", "--set", "train.keep_last=1", "--set", "train.keep_best=1", "--set", "train.keep_every_steps=8")...)
	best, step := -1.0, 0
	for _, r := range rows(t, dir) {
		if v, ok := r.Values["eval/retrieval/r_mean"]; ok && v > best {
			best, step = v, r.Step
		}
	}
	want := []int{8, 16, 20}
	if !slices.Contains(want, step) {
		want = append(want, step)
		slices.Sort(want)
	}
	list := check.Get(checkpoint.List(filepath.Join(dir, "checkpoints")))(t)
	var got []int
	for _, e := range list {
		got = append(got, e.Step)
		if e.Metric == nil {
			t.Errorf("step %d has no metric", e.Step)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v (best %v at %d)", got, want, best, step)
	}
}

// The time limit of a run counts all its sessions.
func TestMinutesCountAcrossSessions(t *testing.T) {
	dir := t.TempDir()
	args := tinyArgs(dir, "--set", "train.max_minutes=0.02", "--set", "schedule.kind=constant", "--set", "train.log_every_steps=1", "--set", "train.eval_every_steps=0")
	if interrupted(t, dir, 3, args...) != exitInterrupted {
		t.Skip("too slow to be interrupted in 1.2 seconds")
	}
	c := check.Get(checkpoint.Load(dir))(t)
	c.Close()
	// As if the first session had almost used up the time.
	path := filepath.Join(c.Path, "state.json")
	text := check.Get(os.ReadFile(path))(t)
	elapsed := regexp.MustCompile(`"elapsed_seconds": [0-9.]+`)
	if !elapsed.Match(text) {
		t.Fatalf("no time in %s", text)
	}
	check.OK(t, os.WriteFile(path, elapsed.ReplaceAll(text, []byte(`"elapsed_seconds": 1.199`)), 0o666))
	checkpointtest.Reseal(t, c.Path)
	must(t, exitDone, args...)
	if n := lastRow(dir) - c.Step; n < 1 || n > 3 {
		t.Errorf("%d steps in the last millisecond of the run", n)
	}
	_, stderr := must(t, exitDone, args...)
	contains(t, stderr, "the run is finished at step")
}

func TestOneProcessPerFolder(t *testing.T) {
	dir := t.TempDir()
	lock := check.Get(folder.Lock(dir, nil))(t)
	fails(t, exitFailed, tinyArgs(dir), "another process writes to "+dir+" (process ", "): wait for it", "--out")
	check.OK(t, lock.Release())
	must(t, exitDone, tinyArgs(dir, "--max-steps", "1", "--quiet")...)
}

// A command that is cancelled before its first step ends with 130 as well.
func TestCancelledCommands(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--max-steps", "1", "--quiet")...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		tinyArgs(t.TempDir()), tinyArgs(dir, "--max-steps", "1"), tinyArgs(dir, "--max-steps", "2"),
		{"eval", "--checkpoint", dir}, {"bench", "--config", tiny},
	} {
		var out, errOut bytes.Buffer
		if code := execute(ctx, args, &out, &errOut); code != exitInterrupted || out.Len() > 0 {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, out.String(), errOut.String())
		}
	}
}

// Eight samples seen over and over are learned by heart.
func TestLearnsByHeart(t *testing.T) {
	if testing.Short() {
		t.Skip("150 steps")
	}
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--max-steps", "150", "--set", "data.overfit_samples=8", "--set", "data.drop_last=false", "--set", "optimizer.lr=5e-4", "--set", "schedule.warmup_steps=20", "--set", "model.text.dropout=0",
		"--set", "queue.start_steps=1000", "--set", "train.save_every_steps=0", "--set", "train.eval_every_steps=0")...)
	list := rows(t, dir)
	first, last := list[0].Values, list[len(list)-1].Values
	if last["loss/itc_in_batch"] > 0.8*math.Log(8) || last["loss/mlm"] > 0.95*first["loss/mlm"] || last["epoch"] != 150 {
		t.Errorf("first %v\nlast %v", first, last)
	}
}

// A run goes on from its own checkpoint by whatever link that is named.
func TestResumeThroughALink(t *testing.T) {
	dir := t.TempDir()
	out, link, other := filepath.Join(dir, "run"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	must(t, exitDone, tinyArgs(out, "--max-steps", "2", "--quiet")...)
	must(t, exitDone, tinyArgs(other, "--max-steps", "1", "--quiet")...)
	if err := os.Symlink("run", link); err != nil {
		t.Skip(err)
	}
	must(t, exitDone, tinyArgs(out, "--max-steps", "3", "--quiet", "--resume", filepath.Join(link, "checkpoints", "step-00000002"))...)
	must(t, exitDone, tinyArgs(link, "--max-steps", "4", "--quiet", "--resume", out)...)
	fails(t, exitUsage, tinyArgs(link, "--resume", other), "holds another run than")
}
