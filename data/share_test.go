package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// sharing returns the loaders of n ranks over a stream.
func sharing(t *testing.T, n int, s Stream, cfg LoaderConfig) (loaders []*Loader) {
	t.Helper()
	for _, g := range paralleltest.Ranks(n) {
		cfg.Group = g
		loaders = append(loaders, newLoader(t, s, cfg))
	}
	return loaders
}

// nexts calls Next on all ranks at once.
func nexts(ctx func(rank int) context.Context, loaders []*Loader) ([]*Batch, []error) {
	batches, errs := make([]*Batch, len(loaders)), make([]error, len(loaders))
	var wg sync.WaitGroup
	for i, l := range loaders {
		wg.Go(func() { batches[i], errs[i] = l.Next(ctx(i)) })
	}
	wg.Wait()
	return batches, errs
}

// joined returns the values of all columns of batches, those of one row after the other.
func joined(batches ...*Batch) (counters []uint64, values map[string][]float32) {
	values = map[string][]float32{}
	for _, b := range batches {
		counters = append(counters, b.Counters...)
		for _, c := range b.owner.cfg.Columns {
			if c.Type == batch.Int32 {
				for _, v := range b.Ints(c.Name) {
					values[c.Name] = append(values[c.Name], float32(v))
				}
			} else {
				values[c.Name] = append(values[c.Name], b.Floats(c.Name)...)
			}
		}
	}
	return counters, values
}

// spoilt is a stream some of whose samples are bad.
type spoilt struct {
	Stream
	bad func(c uint64) bool
}

func (s spoilt) Sample(c uint64, row batch.Row) error {
	if s.bad(c) {
		return fmt.Errorf("data: sample %d is spoilt", c)
	}
	return s.Stream.Sample(c, row)
}

// TestRanksShareTheBatchesOfOneProcess: rows of 1, 2 and 4 ranks, one after the other, are the batch of one process, with
// its position and its counts of bad samples, over the ends of epochs, from any position, for any number of workers.
func TestRanksShareTheBatchesOfOneProcess(t *testing.T) {
	world, err := scenes.New(scenes.Config{MinObjects: 1, MaxObjects: 1, Size: 16, ValSamples: 4, TestSamples: 4}, 3)
	if err != nil {
		t.Fatal(err)
	}
	scenesOf := func(n int, id IdentityConfig) Stream {
		s, err := NewSceneStream(world, n, TrainConfig{Seed: 5, Transform: transform.Train{Size: 16, ScaleMin: .5, Ops: 2, Level: 7}, Text: someText(12), Identities: id})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	photos := trainOf(t, memory(23, "a", "b", "c"), TrainConfig{Seed: 9, Transform: transform.Train{Size: 4, ScaleMin: .5, Flip: true}, Text: someText(6)})
	turns, err := NewAlternating(tokenOf{0, 37, true}, tokenOf{1000, 500, false}, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string]Stream{
		"scenes": scenesOf(50, IdentityConfig{}), "photos": photos, "alternating": turns,
		"identities": scenesOf(300, IdentityConfig{Identities: 4, Images: 2}), "by length": worded{epoch: 37},
	}
	bads := map[string]func(c uint64) bool{
		"none":       func(uint64) bool { return false },
		"few":        func(c uint64) bool { return c == 5 || c == 30 || c == 31 },
		"many":       func(c uint64) bool { return c%7 == 3 || c%23 == 22 },
		"in a row":   func(c uint64) bool { return c >= 16 && c < 29 },
		"the first":  func(c uint64) bool { return c < 3 },
		"epoch ends": func(c uint64) bool { return c%50 > 45 || c%23 > 20 },
	}
	for name, whole := range streams {
		for what, bad := range bads {
			for _, drop := range []bool{false, true} {
				for _, overfit := range []int{0, 11} {
					if overfit > 0 && what != "few" {
						continue
					}
					s := spoilt{whole, bad}
					cfg := LoaderConfig{BatchSize: 8, Workers: 2, MaxBadShare: .9, DropLast: drop, Overfit: overfit}
					if name == "by length" {
						cfg.Lengths, cfg.Seed = []int{5, 9}, 2
					}
					one := newLoader(t, s, cfg)
					var ranks [][]*Loader
					for i, n := range []int{1, 2, 4, 8} {
						cfg.Workers = 1 + i
						ranks = append(ranks, sharing(t, n, s, cfg))
					}
					for k := range 12 {
						from := one.Position()
						want, err := one.Next(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						counters, values := joined(want)
						if k == 5 { // as resumed
							for _, loaders := range ranks {
								for _, l := range loaders {
									l.Start(from)
								}
							}
						}
						for _, loaders := range ranks {
							got, errs := nexts(func(int) context.Context { return t.Context() }, loaders)
							if err := errors.Join(errs...); err != nil {
								t.Fatal(err)
							}
							at := fmt.Sprintf("%s, bad %s, drop %v, overfit %d, batch %d, %d ranks", name, what, drop, overfit, k, len(loaders))
							c, v := joined(got...)
							if !slices.Equal(c, counters) {
								t.Fatalf("%s: samples %v, want %v", at, c, counters)
							}
							for column, x := range values {
								if !slices.Equal(v[column], x) {
									t.Fatalf("%s: %s differs", at, column)
								}
							}
							for i, b := range got {
								if b.Size != 8/len(loaders) || b.Counter != from || b.End != want.End || b.Epoch != want.Epoch || loaders[i].Position() != one.Position() {
									t.Fatalf("%s: %d rows from %d to %d (%v), then %d; want from %d to %d", at, b.Size, b.Counter, b.End, b.Epoch, loaders[i].Position(), from, want.End)
								}
								loaders[i].Recycle(b)
							}
							wantBad, wantRead, wantWhy := one.Bad()
							for _, l := range loaders {
								n, read, why := l.Bad()
								same := slices.EqualFunc(why, wantWhy, func(a, b BadSample) bool { return a.Counter == b.Counter && a.Err.Error() == b.Err.Error() })
								if n != wantBad || read != wantRead || !same {
									t.Fatalf("%s: %d of %d bad, %v; want %d of %d, %v", at, n, read, why, wantBad, wantRead, wantWhy)
								}
							}
						}
						one.Recycle(want)
					}
					for _, loaders := range append(ranks, []*Loader{one}) {
						for _, l := range loaders {
							l.Close()
						}
					}
				}
			}
		}
	}
}

// TestRanksJudgeAsOneProcess: the share of bad samples is judged at each of them with what was read up to it, on any number of
// processes, and what ends one ends all with the same counts and reasons.
func TestRanksJudgeAsOneProcess(t *testing.T) {
	many := func(c uint64) bool { return c%41 == 40 }
	for _, c := range []struct {
		batch int
		share float64
		bad   func(c uint64) bool
		ends  bool
	}{
		{64, .01, func(c uint64) bool { return c == 3 }, false},    // not judged before 50 samples
		{128, .01, func(c uint64) bool { return c == 60 }, true},   // 1 of 61, although 1 of 129 is allowed
		{128, .01, func(c uint64) bool { return c == 100 }, false}, // 1 of 101
		{24, .025, many, false}, {24, .02, many, true},
		{24, .5, func(c uint64) bool { return c >= 120 && c < 400 }, true},
		{24, 0, func(c uint64) bool { return c == 77 }, true},
	} {
		for _, drop := range []bool{false, true} {
			cfg := LoaderConfig{BatchSize: c.batch, Workers: 2, MaxBadShare: c.share, DropLast: drop}
			s := numbered{epoch: 300, bad: c.bad}
			one := newLoader(t, s, cfg)
			var ranks [][]*Loader
			for _, n := range []int{2, 4} {
				ranks = append(ranks, sharing(t, n, s, cfg))
			}
			var err error
			for k := 0; k < 20 && err == nil; k++ {
				_, err = one.Next(t.Context())
				bad, read, _ := one.Bad()
				for _, loaders := range ranks {
					_, errs := nexts(func(int) context.Context { return t.Context() }, loaders)
					for i, l := range loaders {
						if fmt.Sprint(errs[i]) != fmt.Sprint(err) {
							t.Fatalf("batch %d of %d, drop %v, %d ranks: %v, of one process %v", k, c.batch, drop, len(loaders), errs[i], err)
						}
						if b, r, _ := l.Bad(); b != bad || r != read || l.Place() != one.Place() {
							t.Fatalf("batch %d of %d, drop %v, %d ranks: %d of %d bad, %+v; of one process %d of %d, %+v", k, c.batch, drop, len(loaders), b, r, l.Place(), bad, read, one.Place())
						}
					}
				}
			}
			if (err != nil) != c.ends || err != nil && !errors.As(err, new(*BadShareError)) {
				t.Errorf("batch of %d, share %v: %v", c.batch, c.share, err)
			}
		}
	}
}

// reading is a stream that remembers which samples were read.
type reading struct {
	Stream
	mu   *sync.Mutex
	read map[uint64]int
}

func (r reading) Sample(c uint64, row batch.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[c]++
	return r.Stream.Sample(c, row)
}

// TestARankReadsItsOwnRowsAlone, and what is prefetched once.
func TestARankReadsItsOwnRowsAlone(t *testing.T) {
	var loaders []*Loader
	var reads []reading
	for _, g := range paralleltest.Ranks(2) {
		r := reading{numbered{epoch: 100}, &sync.Mutex{}, map[uint64]int{}}
		reads = append(reads, r)
		loaders = append(loaders, newLoader(t, r, LoaderConfig{BatchSize: 6, Workers: 3, Group: g}))
	}
	for range 5 {
		if _, errs := nexts(func(int) context.Context { return t.Context() }, loaders); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	for rank, r := range reads {
		loaders[rank].Close()
		for c, n := range r.read {
			if int(c%6/3) != rank || n != 1 {
				t.Errorf("rank %d read sample %d, %d times", rank, c, n)
			}
		}
		if len(r.read) < 15 {
			t.Errorf("rank %d read %d samples", rank, len(r.read))
		}
	}
}

// TestOneRankEndsAll: too many bad samples, wherever they are, a machine at its limit and a request to stop end the batch on
// all ranks. Only the last of these can be gone on from, at the same place.
func TestOneRankEndsAll(t *testing.T) {
	always := func(int) context.Context { return t.Context() }
	bad := sharing(t, 2, numbered{epoch: 1000, bad: func(c uint64) bool { return c%8 == 0 || c%8 == 1 }}, LoaderConfig{BatchSize: 8, MaxBadShare: .2})
	var errs []error
	for range 20 {
		if _, errs = nexts(always, bad); errs[0] != nil {
			break
		}
	}
	for i, err := range errs {
		var share *BadShareError
		if !errors.As(err, &share) || err.Error() != errs[0].Error() || !strings.Contains(err.Error(), "sample 1 is broken") {
			t.Errorf("rank %d: %v", i, err)
		}
		if _, again := bad[i].Next(t.Context()); again != err {
			t.Errorf("rank %d: the failure must stay, got %v", i, again)
		}
	}
	limit := sharing(t, 2, starved{numbered{epoch: 20}, syscall.EMFILE}, LoaderConfig{BatchSize: 6, MaxBadShare: 1})
	_, errs = nexts(always, limit)
	for i, err := range errs { // sample 5 is of rank 1
		var f *parallel.Failure
		if !errors.As(err, &f) || f.Rank() != 1 || !strings.Contains(err.Error(), "rank 1: data: ") || errors.Is(err, syscall.EMFILE) != (i == 1) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	none := sharing(t, 2, numbered{epoch: 4, bad: func(uint64) bool { return true }}, LoaderConfig{BatchSize: 4, MaxBadShare: 1})
	_, errs = nexts(always, none)
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "no batch of 4 good samples") {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	asked := sharing(t, 2, numbered{epoch: 100}, LoaderConfig{BatchSize: 6})
	if _, errs = nexts(always, asked); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs = nexts(func(rank int) context.Context { return []context.Context{t.Context(), ctx}[rank] }, asked)
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "rank 1: context canceled") || asked[i].Position() != 6 {
			t.Errorf("rank %d: %v, at %d", i, err, asked[i].Position())
		}
	}
	got, errs := nexts(always, asked)
	if errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if c, _ := joined(got...); !slices.Equal(c, []uint64{6, 7, 8, 9, 10, 11}) {
		t.Errorf("after the stop: %v", c)
	}
}

// TestSharesAreEqual: a batch that cannot be shared equally is refused.
func TestSharesAreEqual(t *testing.T) {
	_, err := NewLoader(numbered{epoch: 20}, LoaderConfig{Columns: oneView(numbered{}), BatchSize: 8, Group: paralleltest.Ranks(3)[1]})
	if err == nil || !strings.Contains(err.Error(), "train.batch_size: the rows of a batch must be shared equally (got 8 rows for 3 processes): use a multiple of 3") {
		t.Errorf("got %v", err)
	}
}
