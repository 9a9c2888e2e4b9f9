package parallel_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/check"
)

// together calls f on n ranks at once and returns their errors.
func together(n int, f func(g parallel.Group) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(n) {
		wg.Go(func() { errs[i] = f(g) })
	}
	wg.Wait()
	return errs
}

func TestAgree(t *testing.T) {
	if err := parallel.Agree(parallel.Single{}, io.EOF); err != io.EOF {
		t.Errorf("one process: %v", err)
	}
	for _, c := range []struct {
		texts  []string // of each rank
		want   string
		common bool
		rank   int
	}{
		{[]string{"", "", ""}, "", false, -1},
		{[]string{"full", "full", "full"}, "full", true, 0},
		{[]string{"", "full", ""}, "rank 1: full", false, 1},
		{[]string{"", "full", "full"}, "ranks 1, 2: full", false, 1},
		{[]string{"lost", "full", "lost"}, "ranks 0, 2: lost\nrank 1: full", false, 0},
	} {
		own := make([]error, 3)
		for r, text := range c.texts {
			if text != "" {
				own[r] = errors.New(text)
			}
		}
		for r, err := range together(3, func(g parallel.Group) error { return parallel.Agree(g, own[g.Rank()]) }) {
			f := (*parallel.Failure)(nil)
			if !errors.As(err, &f) {
				if c.want != "" {
					t.Errorf("%q: rank %d has no failure", c.texts, r)
				}
				continue
			}
			if f.Error() != c.want || f.Common() != c.common || f.Rank() != c.rank || f.Unwrap() != own[r] {
				t.Errorf("%q: rank %d has %q, common %t, first %d, own %v", c.texts, r, f, f.Common(), f.Rank(), f.Unwrap())
			}
		}
	}
}

// TestAgreeAgain: a failure that was agreed on needs no second exchange, and an error of the group
// is none.
func TestAgreeAgain(t *testing.T) {
	for r, err := range together(2, func(g parallel.Group) error {
		err := parallel.Agree(g, fmt.Errorf("rank %d", g.Rank()))
		if again := parallel.Agree(g, fmt.Errorf("wrapped: %w", err)); errors.Unwrap(again) != err {
			return fmt.Errorf("%v became %v", err, again)
		}
		g.(*paralleltest.Rank).Fail = io.ErrClosedPipe
		return parallel.Agree(g, nil)
	}) {
		if f := (*parallel.Failure)(nil); errors.As(err, &f) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestARankThatFailedMeetsTheOthers: whatever the others come to next.
func TestARankThatFailedMeetsTheOthers(t *testing.T) {
	for name, next := range map[string]func(g parallel.Group, work func() error) error{"alone": parallel.Alone, "first": parallel.First, "turns": parallel.Turns} {
		for _, failed := range []int{0, 1} {
			worked := make([]bool, 2)
			for r, err := range together(2, func(g parallel.Group) error {
				if g.Rank() == failed {
					return parallel.Agree(g, io.EOF)
				}
				return next(g, func() error { worked[g.Rank()] = true; return nil })
			}) {
				if f := (*parallel.Failure)(nil); !errors.As(err, &f) || f.Rank() != failed || worked[r] {
					t.Errorf("%s: rank %d: %v, worked %t", name, r, err, worked[r])
				}
			}
		}
	}
}

func TestWhoWorks(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(g parallel.Group, work func() error) error
		want [][]int // ranks in the order of their work, those of one time together
	}{
		{"alone", parallel.Alone, [][]int{{0}}},
		{"first", parallel.First, [][]int{{0}, {1, 2}}},
		{"turns", parallel.Turns, [][]int{{0}, {1}, {2}}},
	} {
		var mu sync.Mutex
		var order []int
		check.OK(t, errors.Join(together(3, func(g parallel.Group) error {
			return c.do(g, func() error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, g.Rank())
				return nil
			})
		})...))
		for _, together := range c.want {
			got := slices.Clone(order[:len(together)])
			slices.Sort(got)
			if order = order[len(together):]; !slices.Equal(got, together) {
				t.Errorf("%s: %v at once, want %v", c.name, got, together)
			}
		}
		if len(order) > 0 {
			t.Errorf("%s: then %v", c.name, order)
		}
		for r, err := range together(3, func(g parallel.Group) error { return c.do(g, func() error { return io.EOF }) }) {
			if f := (*parallel.Failure)(nil); !errors.As(err, &f) || f.Rank() != 0 {
				t.Errorf("%s: rank %d: %v", c.name, r, err)
			}
		}
	}
	done := false
	if err := parallel.Turns(parallel.Single{}, func() error { done = true; return io.EOF }); err != io.EOF || !done {
		t.Errorf("one process: %v, %t", err, done)
	}
}

// TestWorkThatTakesLong: the others are told again and again that it goes on, so that no exchange takes longer than
// a group may wait.
func TestWorkThatTakesLong(t *testing.T) {
	if err := errors.Join(together(2, func(g parallel.Group) error {
		m := parallel.Measure(g)
		err := parallel.Alone(m, func() error { time.Sleep(2500 * time.Millisecond); return nil })
		if n := m.Times().Exchanges; n < 4 && err == nil { // at the beginning, twice meanwhile, in the end
			err = fmt.Errorf("%d exchanges", n)
		}
		return err
	})...); err != nil {
		t.Error(err)
	}
}

func TestTold(t *testing.T) {
	if err := errors.Join(together(3, func(g parallel.Group) error {
		x, err := parallel.Told(g, []byte{byte(g.Rank() + 7)})
		if err == nil && !slices.Equal(x, []byte{7}) {
			err = fmt.Errorf("rank %d was told %v", g.Rank(), x)
		}
		return err
	})...); err != nil {
		t.Error(err)
	}
}

// TestMeasured: a measured group exchanges what the other one does, and counts it.
func TestMeasured(t *testing.T) {
	if err := errors.Join(together(2, func(g parallel.Group) error {
		m := parallel.Measure(g)
		var _ parallel.Group = m
		x, share := []float32{1, 2}, make([]float32, 1)
		m.Begin(x)
		if err := m.Wait(); err != nil {
			return err
		}
		all, err1 := m.Gather(nil, x)
		ints, err2 := m.GatherInts(nil, []int32{int32(g.Rank())})
		texts, err3 := m.GatherBytes([]byte("ab"))
		yes, err4 := m.All(g.Rank() == 0)
		err5, err6 := m.Sum(x), m.SumShare(share, []float32{3, 4})
		got := []any{x, all, ints, texts, yes, share}
		want := []any{[]float32{4, 8}, []float32{2, 4, 2, 4}, []int32{0, 1}, [][]byte{[]byte("ab"), []byte("ab")}, false, []float32{float32(6 + 2*g.Rank())}}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		if at := m.Times(); at.Exchanges != 7 || at.Bytes != 8+8+4+2+1+8+8 || at.Exchange <= 0 || m.Waited <= 0 || m.Overlaps() {
			return fmt.Errorf("times %+v, waited %v", at, m.Waited)
		}
		if of, ok := parallel.As[*paralleltest.Rank](m); !ok || of != g {
			return errors.New("the group behind is not found")
		}
		if _, ok := parallel.As[parallel.Aborter](m); ok {
			return errors.New("goroutines cannot be aborted")
		}
		return errors.Join(err1, err2, err3, err4, err5, err6)
	})...); err != nil {
		t.Error(err)
	}
}
