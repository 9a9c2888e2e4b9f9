package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// told is what a rank said and found.
type told struct {
	recorder
	warnings bytes.Buffer
	result   Result
	err      error
}

// onRanks trains on n ranks at once, each with the configuration and the options that set makes for it.
func onRanks(t *testing.T, n int, set func(rank int, o *Options) config.Config) []*told {
	t.Helper()
	out := make([]*told, n)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(n) {
		out[i] = new(told)
		wg.Go(func() {
			r := out[i]
			o := Options{Group: g, Reporter: &r.recorder, Warn: &r.warnings}
			cfg := set(i, &o)
			r.result, r.err = trainOn(t.Context(), cfg, o)
		})
	}
	wg.Wait()
	return out
}

func trainOn(ctx context.Context, cfg config.Config, o Options) (Result, error) {
	r, err := New(ctx, cfg, o)
	if err != nil {
		return Result{}, err
	}
	result, err := r.Train(ctx)
	return result, errors.Join(err, r.Close())
}

// sameFor is the configuration of all ranks.
func sameFor(cfg config.Config) func(int, *Options) config.Config {
	return func(int, *Options) config.Config { return cfg }
}

// filesOf lists a folder.
func filesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	check.OK(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if strings.HasPrefix(name, "events.out.tfevents.") {
			name = "events"
		}
		list = append(list, name)
		return err
	}))
	slices.Sort(list)
	return list
}

// logOf reads the log of a run.
func logOf(t *testing.T, dir string) []runlog.Row {
	t.Helper()
	return check.Get(runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile)))(t)
}

// alikeRows compares logs: within a relative difference, and times not at all.
func alikeRows(t *testing.T, got, want []runlog.Row, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Step != w.Step {
			t.Fatalf("row %d is of step %d, want %d", i, got[i].Step, w.Step)
		}
		for name, v := range w.Values {
			x, ok := got[i].Values[name]
			if !ok || !runlog.Timed(name) && !(math.Abs(x-v) <= tolerance*math.Abs(v)) {
				t.Errorf("step %d: %s is %v (%t), want %v", w.Step, name, x, ok, v)
			}
		}
	}
}

// TestTwoRanksOneRun: two ranks leave the run folder that one process does, with its log, rank 0 alone speaks, and both
// go on as one run on two, one and two ranks again.
func TestTwoRanksOneRun(t *testing.T) {
	alone, dir := t.TempDir(), t.TempDir()
	sets := []string{"train.log_every_steps=1", "train.save_every_steps=3", "train.keep_best=1"}
	trained(t, settings(t, alone, sets...), Options{})
	for i, stage := range []struct{ ranks, to int }{{2, 3}, {1, 5}, {2, 8}} {
		cfg := settings(t, dir, append(sets, fmt.Sprint("train.max_steps=", stage.to))...)
		if stage.to < 8 {
			cfg.Schedule = settings(t, dir, sets...).Schedule
		}
		ranks := onRanks(t, stage.ranks, sameFor(cfg))
		for r, x := range ranks {
			if x.err != nil {
				t.Fatalf("to step %d: rank %d: %v", stage.to, r, x.err)
			}
			if r > 0 && (len(x.lines) > 0 || len(x.phases) > 0 || x.warnings.Len() > 0 || x.result.Scores != nil) {
				t.Errorf("rank %d said %q, %q, %q and found %v", r, x.lines, x.phases, x.warnings.String(), x.result.Scores)
			}
		}
		all := strings.Join(ranks[0].lines, "\n")
		was := []int{0, 2, 1}[i]
		if said := strings.Contains(all, fmt.Sprintf("processes = %d (was %d)", stage.ranks, was)); said != (was > 0) {
			t.Errorf("from %d to %d ranks: %s", was, stage.ranks, all)
		}
		if ranks[0].result.Scores == nil || !slices.Equal(ranks[0].steps, []int{1, 2, 3, 4, 5, 6, 7, 8}[[]int{0, 3, 5}[i]:stage.to]) {
			t.Errorf("steps %v, scores %v", ranks[0].steps, ranks[0].result.Scores)
		}
		ck := check.Get(checkpoint.Load(dir))(t)
		s, err := train.ReadState(ck)
		if ck.Close(); err != nil || max(1, s.Ranks) != stage.ranks || s.Step != stage.to {
			t.Errorf("state %+v: %v", s, err)
		}
	}
	for _, name := range []string{"checkpoints/latest", "config.toml", "environment.json", "metrics.jsonl", "report.html", "events"} {
		if !slices.Contains(filesOf(t, dir), name) {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range filesOf(t, dir) {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s is left", name)
		}
	}
	want := logOf(t, alone)
	got := logOf(t, dir)
	for _, rows := range [][]runlog.Row{want, got} { // of steps that both evaluate
		for _, r := range rows {
			if r.Step != 4 && r.Step != 8 {
				for name := range r.Values {
					if strings.HasPrefix(name, "eval/") {
						delete(r.Values, name)
					}
				}
			}
			delete(r.Values, "lr") // which follows the length
		}
	}
	alikeRows(t, got[:3], want[:3], 1e-5)
}

// TestOneFolderOneRun: the folder, its log and its checkpoints are those of one process: the same files, and losses as near
// as sums in another order are.
func TestOneFolderOneRun(t *testing.T) {
	alone, dir := t.TempDir(), t.TempDir()
	sets := []string{"train.log_every_steps=1", "train.save_every_steps=3", "train.keep_best=1"}
	trained(t, settings(t, alone, sets...), Options{})
	for r, x := range onRanks(t, 2, sameFor(settings(t, dir, sets...))) {
		if x.err != nil {
			t.Fatalf("rank %d: %v", r, x.err)
		}
	}
	alikeRows(t, logOf(t, dir), logOf(t, alone), 1e-4)
	if got, want := filesOf(t, dir), filesOf(t, alone); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestRanksAreCompared: what differs between ranks is one error on all before the first step, and no run begins.
func TestRanksAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(t *testing.T, rank int, o *Options, cfg *config.Config)
		want string
	}{
		"configuration": {func(_ *testing.T, _ int, _ *Options, c *config.Config) { c.Optimizer.LR = 1e-3 }, "rank 1 has another configuration than rank 0 ([optimizer] lr = "},
		"seed":          {func(_ *testing.T, _ int, _ *Options, c *config.Config) { c.Run.Seed = 7 }, "rank 1 has another seed than rank 0 (42 there, 7 here)"},
		"resume":        {func(_ *testing.T, _ int, o *Options, _ *config.Config) { o.Resume = Never }, "rank 1 has another --resume than rank 0"},
		"invalid":       {func(_ *testing.T, _ int, _ *Options, c *config.Config) { c.Train.BatchSize = -2 }, "rank 1: train.batch_size: must be > 0 (got -2)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			base := settings(t, dir)
			for r, x := range onRanks(t, 2, func(rank int, o *Options) config.Config {
				cfg := base
				if rank == 1 {
					c.set(t, rank, o, &cfg)
				}
				return cfg
			}) {
				if f := (*parallel.Failure)(nil); !errors.As(x.err, &f) || !strings.Contains(f.Error(), c.want) {
					t.Errorf("rank %d: %v, want %q", r, x.err, c.want)
				}
			}
			if isFolder(dir) {
				t.Error("there is a run folder")
			}
		})
	}
}

// TestBatchesThatCannotBeShared: rows that the ranks cannot share equally, and a fit, which has none, are problems of the
// configuration.
func TestBatchesThatCannotBeShared(t *testing.T) {
	for r, x := range onRanks(t, 3, sameFor(settings(t, filepath.Join(t.TempDir(), "run")))) {
		f, list := (*parallel.Failure)(nil), config.Errors(nil)
		if !errors.As(x.err, &f) || !f.Common() || !errors.As(x.err, &list) || !strings.Contains(f.Error(), "train.batch_size: must be a multiple of the number of processes, 3 (got 8)") {
			t.Errorf("rank %d: %v", r, x.err)
		}
	}
}

// TestAFailedSaveEndsAllRanks with its error: a disk that is full on rank 0.
func TestAFailedSaveEndsAllRanks(t *testing.T) {
	if os.Getuid() == 0 {
		// Root writes anywhere: a file stands instead of the folder of the first checkpoint.
		t.Log("as root")
	}
	dir := t.TempDir()
	ranks := onRanks(t, 2, func(rank int, o *Options) config.Config {
		if rank == 0 {
			o.Reporter.(*recorder).after = func(step int) {
				if step == 2 { // the place where the checkpoint is written
					if err := os.WriteFile(filepath.Join(dir, runlog.CheckpointsDir, "step-00000003"), nil, 0o666); err != nil {
						t.Error(err)
					}
					if err := os.Mkdir(filepath.Join(dir, runlog.CheckpointsDir, ".old-step-00000003"), 0o777); err != nil {
						t.Error(err)
					}
					if err := os.WriteFile(filepath.Join(dir, runlog.CheckpointsDir, ".old-step-00000003", "x"), nil, 0o666); err != nil {
						t.Error(err)
					}
				}
			}
		}
		return settings(t, dir, "train.save_every_steps=3")
	})
	for r, x := range ranks {
		if f := (*parallel.Failure)(nil); !errors.As(x.err, &f) || !strings.Contains(x.err.Error(), "save step 3") {
			t.Errorf("rank %d: %v", r, x.err)
		}
	}
}

// placedRank is a group whose ranks share a machine.
type placedRank struct{ parallel.Group }

func (placedRank) Local() (rank, ranks int) { return 0, 1 }
func (placedRank) Threads() int             { return 3 }

// TestThreads: a rank computes with its share of the processors, unless the configuration says with how many threads.
func TestThreads(t *testing.T) {
	for _, set := range []struct{ threads, want int }{{0, 3}, {2, 2}} {
		cfg := settings(t, t.TempDir(), fmt.Sprint("compute.threads=", set.threads))
		e := check.Get(setup.EngineOf(placedRank{paralleltest.Ranks(1)[0]}, cfg, t.Logf))(t)
		if e.Close(); e.Threads() != set.want {
			t.Errorf("compute.threads = %d: %d threads, want %d", set.threads, e.Threads(), set.want)
		}
	}
}
