package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// elsewhere opens a run on two ranks that see other folders: rank 1 has dir of its own machine.
func elsewhere(t *testing.T, sets ...string) (said *recorder, errs []error) {
	t.Helper()
	said = new(recorder)
	errs = make([]error, 2)
	dirs := []string{t.TempDir(), t.TempDir()}
	done := make(chan struct{})
	for i, g := range paralleltest.Ranks(2) {
		go func() {
			defer func() { done <- struct{}{} }()
			b := newOpening(settings(t, dirs[i], sets...), Options{Group: g, Reporter: said}, false)
			b.dir = dirs[i]
			errs[i] = b.seesFolder()
		}()
	}
	<-done
	<-done
	return said, errs
}

// TestAFolderThatOthersDoNotSee is told before the first step, and an error where checkpoints are read on the way.
func TestAFolderThatOthersDoNotSee(t *testing.T) {
	said, errs := elsewhere(t)
	if err := errors.Join(errs...); err != nil || len(said.lines) != 1 || !strings.HasPrefix(said.lines[0], "note: rank 1: the run folder ") {
		t.Errorf("%q, %v", said.lines, err)
	}
	_, errs = elsewhere(t, "train.on_nan=rollback", "train.save_every_steps=2")
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "run.out: rank 1: the run folder") || !strings.Contains(err.Error(), `set train.on_nan to "stop" or "skip"`) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestChoose: others open the checkpoint that rank 0 finds, and say so where they cannot or where theirs is another one.
func TestChoose(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	trained(t, settings(t, dir, "train.max_steps=2"), Options{})
	trained(t, settings(t, other, "train.max_steps=3"), Options{})
	for _, c := range []struct {
		open func(path string) (*checkpoint.Checkpoint, error)
		want string
	}{
		{checkpoint.Load, ""},
		{func(string) (*checkpoint.Checkpoint, error) { return checkpoint.Load(filepath.Join(dir, "none")) }, "rank 1: the checkpoint of rank 0 cannot be read here: checkpoint: no checkpoint at"},
		{func(string) (*checkpoint.Checkpoint, error) { return checkpoint.Load(other) }, "rank 1 has another checkpoint"},
	} {
		for r, err := range atOnce(2, func(g parallel.Group) error {
			ck, err := setup.SharedCheckpoint(g, func() (*checkpoint.Checkpoint, error) { return checkpoint.Load(dir) }, c.open)
			if err == nil {
				err = ck.Close()
			}
			return err
		}) {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("rank %d: %v, want %q", r, err, c.want)
			}
		}
	}
}

// atOnce calls f on n ranks at once.
func atOnce(n int, f func(g parallel.Group) error) []error {
	errs := make([]error, n)
	done := make(chan struct{})
	for i, g := range paralleltest.Ranks(n) {
		go func() {
			errs[i] = f(g)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	return errs
}

// TestRanksWithOtherData: rank 1 has another order, another vocabulary, fewer rows to evaluate on, or other parameters.
func TestRanksWithOtherData(t *testing.T) {
	cfg := settings(t, t.TempDir())
	tok := check.Get(setup.Tokenizer(t.Context(), cfg, nil, nil))(t)
	less := settings(t, t.TempDir(), "data.vocab_size=70")
	small := check.Get(setup.Tokenizer(t.Context(), less, nil, nil))(t)
	stream := check.Get(OpenStream(t.Context(), cfg, tok, source.Options{}))(t)
	set := check.Get(OpenSplit(t.Context(), cfg, "val", nil, nil))(t)
	few := check.Get(OpenSplit(t.Context(), settings(t, t.TempDir(), "data.scenes.val_samples=10"), "val", nil, nil))(t)
	opened := check.Get((&Run{cfg: cfg}).openedDataOf(t.Context(), stream))(t)
	for _, c := range []struct {
		change func(r *Run, s *data.Stream)
		want   string
	}{
		{func(*Run, *data.Stream) {}, ""},
		{func(r *Run, _ *data.Stream) {
			other := *r.data.Splits[0]
			other.Record.List[0]++
			r.data = &record.Opened{Splits: []*record.OpenedSplit{&other}}
		}, "rank 1 has another list of samples of train than rank 0 (sum "},
		{func(r *Run, _ *data.Stream) { r.tok = small }, "rank 1 has another vocabulary than rank 0"},
		{func(r *Run, _ *data.Stream) { r.set = few }, "rank 1 has another split val than rank 0 (20 rows there, 10 rows here)"},
	} {
		for r, err := range atOnce(2, func(g parallel.Group) error {
			run, s := &Run{group: g, cfg: cfg, tok: tok, set: set, data: opened}, stream
			if g.Rank() == 1 {
				c.change(run, &s)
			}
			facts, err := run.dataOf(s)
			if err != nil {
				return err
			}
			return facts.same(g)
		}) {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("rank %d: %v, want %q", r, err, c.want)
			}
		}
	}
	for r, err := range atOnce(2, func(g parallel.Group) error {
		run, err := New(t.Context(), settings(t, filepath.Join(t.TempDir(), "run")), Options{})
		if err != nil {
			return err
		}
		defer run.Close()
		run.group = g
		if err := run.sameParameters(t.Context()); err != nil {
			return err
		}
		run.pairs.Params().Values()[7] += float32(g.Rank())
		return run.sameParameters(t.Context())
	}) {
		if err == nil || !strings.Contains(err.Error(), "rank 1 has another start of parameters than rank 0") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestTheClockOfRank0 decides on all ranks when the time of a run is over.
func TestTheClockOfRank0(t *testing.T) {
	for r, err := range atOnce(3, func(g parallel.Group) error {
		run := &Run{group: g}
		if run.clock(0) != nil {
			return errors.New("a clock that nothing asks for")
		}
		got, err := run.clock(time.Minute)(time.Duration(7+g.Rank()) * time.Second)
		if err == nil && got != 7*time.Second {
			err = fmt.Errorf("%v", got)
		}
		return err
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if (&Run{group: parallel.Single{}, cfg: config.Config{Train: config.Train{SaveEveryMinutes: 1}}}).clock(time.Minute) != nil {
		t.Error("one process needs no clock of another")
	}
	dir := t.TempDir()
	cfg := settings(t, dir, "train.save_every_minutes=0.0000001", "train.eval_every_steps=0", "train.keep_last=100", "train.save_every_steps=0")
	for r, x := range onRanks(t, 2, sameFor(cfg)) {
		if x.err != nil {
			t.Errorf("rank %d: %v", r, x.err)
		}
	}
	if list, err := checkpoint.Verify(dir); err != nil || len(list) != cfg.Train.MaxSteps {
		t.Errorf("%d checkpoints by time, want %d: %v", len(list), cfg.Train.MaxSteps, err)
	}
}

// TestRollbackOfRanks: all go back to the checkpoint that rank 0 finds.
func TestRollbackOfRanks(t *testing.T) {
	dir := t.TempDir()
	cfg := settings(t, dir, "train.max_steps=4", "train.save_every_steps=2", "train.on_nan=rollback")
	steps := make([]int, 2)
	for r, err := range atOnce(2, func(g parallel.Group) error {
		run, err := New(t.Context(), cfg, Options{Group: g})
		if err != nil {
			return err
		}
		defer run.Close()
		if _, err := run.Train(t.Context()); err != nil {
			return err
		}
		steps[g.Rank()], err = run.rollback(t.Context(), 4, 1)
		return err
	}) {
		if err != nil || steps[r] != 4 {
			t.Errorf("rank %d: back to step %d: %v", r, steps[r], err)
		}
	}
	ck := check.Get(checkpoint.Load(dir))(t)
	defer ck.Close()
	if s, err := train.ReadState(ck); err != nil || s.Ranks != 2 {
		t.Errorf("%+v: %v", s, err)
	}
}
