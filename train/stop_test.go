package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/data"
)

// runs makes a run of each session at once. after is a hook of each rank.
func runs(t *testing.T, sessions []*Session, total int, after func(rank int, e *Event, cancel func()) error) (saved []int, outs []Outcome, errs []error) {
	t.Helper()
	saved, outs, errs = make([]int, len(sessions)), make([]Outcome, len(sessions)), make([]error, len(sessions))
	var wg sync.WaitGroup
	for i, s := range sessions {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		saves := Checkpoints(SaveConfig{Save: func(e *Event) error { saved[i] = e.Step; return nil }})
		own := Hook{Name: "test", Stage: StageEval, After: func(_ context.Context, e *Event) error { return after(i, e, cancel) }}
		wg.Go(func() { outs[i], errs[i] = Run(ctx, Config{Total: total}, s, saves, own) })
	}
	wg.Wait()
	return saved, outs, errs
}

// TestOneRankThatIsAskedToStop: all ranks end before the same step, save it, and have read the same samples; so they go on with
// the bits of a run that nobody interrupted.
func TestOneRankThatIsAskedToStop(t *testing.T) {
	whole, _ := ranksOf(t, parallelConfig(t), 0, 0)
	for step := range 6 {
		if _, errs := together(t, whole, step); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	sessions, _ := ranksOf(t, parallelConfig(t), 0, 0)
	saved, outs, errs := runs(t, sessions, 9, func(rank int, e *Event, cancel func()) error {
		if rank == 1 && e.Step == 3 {
			cancel()
		}
		return nil
	})
	for i := range sessions {
		if errs[i] != ErrInterrupted || outs[i].Step != 3 || saved[i] != 3 || sessions[i].loader.Position() != 24 {
			t.Errorf("rank %d: %v after step %d, saved %d, at sample %d", i, errs[i], outs[i].Step, saved[i], sessions[i].loader.Position())
		}
	}
	for step := 3; step < 6; step++ {
		if _, errs := together(t, sessions, step); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	for i, s := range sessions {
		sameMemory(t, fmt.Sprint("rank ", i), s.memory(), whole[i].memory())
	}
}

// TestARunThatIsOverIsNotInterrupted: a request to stop during the last step changes nothing.
func TestARunThatIsOverIsNotInterrupted(t *testing.T) {
	sessions, _ := ranksOf(t, parallelConfig(t), 0, 0)
	_, outs, errs := runs(t, sessions, 2, func(rank int, e *Event, cancel func()) error {
		if rank == 0 && e.Last {
			cancel()
		}
		return nil
	})
	if errors.Join(errs...) != nil || outs[0].Step != 2 || outs[1].Step != 2 {
		t.Errorf("%v, %+v", errs, outs)
	}
}

// TestAHookThatIsInterrupted: work of all ranks that ends because one was asked to stop interrupts all, other errors do not.
func TestAHookThatIsInterrupted(t *testing.T) {
	for text, want := range map[string]bool{"evaluation: " + context.Canceled.Error(): true, "the disk is full": false} {
		sessions, group := ranksOf(t, parallelConfig(t), 0, 0)
		_, _, errs := runs(t, sessions, 9, func(rank int, e *Event, cancel func()) error {
			var err error
			if rank == 1 && e.Step == 2 {
				err = errors.New(text)
			}
			return parallel.Agree(group[rank], err)
		})
		for i, err := range errs {
			if errors.Is(err, ErrInterrupted) != want || !want && !strings.Contains(fmt.Sprint(err), "rank 1: the disk is full") {
				t.Errorf("%s: rank %d: %v", text, i, err)
			}
		}
	}
}

// damaged is a stream with a bad sample.
type damaged struct{ data.Stream }

func (d damaged) Sample(c uint64, row batch.Row) error {
	if c == 21 {
		return errors.New("the picture is cut short")
	}
	return d.Stream.Sample(c, row)
}

// TestDataThatOneRankCannotRead ends the run on all, with the same error and after the same step.
func TestDataThatOneRankCannotRead(t *testing.T) {
	var sessions []*Session
	for _, g := range paralleltest.Ranks(2) {
		s, err := sessionIn(t, parallelConfig(t, "data.max_bad_share=0"), g, nil, func(all data.Stream) data.Stream { return damaged{all} })
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	saved, outs, errs := runs(t, sessions, 9, func(int, *Event, func()) error { return nil })
	for i, err := range errs {
		var share *data.BadShareError
		if !errors.As(err, &share) || err.Error() != errs[0].Error() || outs[i].Step != 2 || saved[i] != 2 || sessions[i].loader.Position() != 16 {
			t.Errorf("rank %d: %v after step %d, saved %d, at %d", i, err, outs[i].Step, saved[i], sessions[i].loader.Position())
		}
	}
}
