package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// letters is a tokenizer of one token per byte: enough to see padding and cuts.
type letters struct{}

func (letters) Encode(s string, n int) []int32 {
	ids := []int32{2}
	for i := 0; i < len(s) && (n <= 0 || len(ids) < n); i++ {
		ids = append(ids, int32(s[i]))
	}
	return ids
}

func (letters) PadID() int32 { return 0 }

// counters reads n batches and returns the counters in each.
func counters(t *testing.T, l *Loader, n int) [][]int32 {
	t.Helper()
	var all [][]int32
	for range n {
		b := nextOf(t, l)
		all = append(all, slices.Clone(b.Ints(batch.IDs)))
		l.Recycle(b)
	}
	return all
}

func newLoader(t *testing.T, s Stream, cfg LoaderConfig) *Loader {
	t.Helper()
	if cfg.Columns == nil {
		cfg.Columns = oneView(s)
	}
	l, err := NewLoader(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLoaderOrderSkipsBadSamples(t *testing.T) {
	s := numbered{epoch: 10, bad: func(c uint64) bool { return c%5 == 1 }}
	for _, workers := range []int{1, 2, 7} {
		l := newLoader(t, s, LoaderConfig{BatchSize: 3, Workers: workers, MaxBadShare: 0.5})
		got := counters(t, l, 4)
		want := [][]int32{{0, 2, 3}, {4, 5, 7}, {8, 9, 10}, {12, 13, 14}}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d workers: batches of %v, want %v", workers, got, want)
		}
		if l.Position() != 15 {
			t.Errorf("position %d, want 15", l.Position())
		}
		bad, read, ex := l.Bad()
		if bad != 3 || read != 15 || len(ex) != 3 || ex[1].Counter != 6 {
			t.Errorf("%d bad of %d with examples %v, want 3 of 15", bad, read, ex)
		}
	}
}

func TestLoaderDropLast(t *testing.T) {
	l := newLoader(t, numbered{epoch: 5}, LoaderConfig{BatchSize: 2, DropLast: true})
	if got, want := fmt.Sprint(counters(t, l, 4)), "[[0 1] [2 3] [5 6] [7 8]]"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	l.Start(4)
	if got, want := fmt.Sprint(counters(t, l, 1)), "[[5 6]]"; got != want {
		t.Errorf("from 4: got %v, want %v", got, want)
	}
	if _, err := NewLoader(numbered{epoch: 1}, LoaderConfig{Columns: oneView(numbered{}), BatchSize: 2, DropLast: true}); err == nil {
		t.Error("an epoch smaller than a batch must fail with DropLast")
	}
	// One bad sample leaves too few for a batch in every epoch.
	l = newLoader(t, numbered{epoch: 2, bad: func(c uint64) bool { return c%2 == 0 }}, LoaderConfig{BatchSize: 2, DropLast: true, MaxBadShare: 1})
	if _, err := l.Next(context.Background()); err == nil {
		t.Error("no error although no epoch fills a batch")
	}
}

// TestBatchOfManyEpochs: a batch may take several epochs of data with bad samples, of one process and of two; a stream without good ones ends.
func TestBatchOfManyEpochs(t *testing.T) {
	cfg := LoaderConfig{BatchSize: 12, MaxBadShare: 1}
	for _, n := range []int{1, 2} {
		batches, errs := nexts(func(int) context.Context { return t.Context() }, sharing(t, n, numbered{epoch: 4, bad: func(c uint64) bool { return c%4 == 0 }}, cfg))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if b := batches[n-1]; b.End != 16 || b.Counters[len(b.Counters)-1] != 15 {
			t.Errorf("%d processes: samples %v up to %d", n, b.Counters, b.End)
		}
		_, errs = nexts(func(int) context.Context { return t.Context() }, sharing(t, n, numbered{epoch: 4, bad: func(uint64) bool { return true }}, cfg))
		if err := errs[n-1]; err == nil || !strings.Contains(err.Error(), "no batch of 12 good samples") {
			t.Errorf("%d processes, all bad: %v", n, err)
		}
	}
}

func TestLoaderOverfit(t *testing.T) {
	l := newLoader(t, numbered{epoch: 100}, LoaderConfig{BatchSize: 2, Overfit: 3})
	if got, want := fmt.Sprint(counters(t, l, 3)), "[[0 1] [2 0] [1 2]]"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLoaderStopsAtTooManyBadSamples(t *testing.T) {
	s := numbered{epoch: 1000, bad: func(c uint64) bool { return c%4 == 0 }}
	l := newLoader(t, s, LoaderConfig{BatchSize: 4, MaxBadShare: 0.2})
	var err error
	n := 0
	for err == nil && n < 1000 {
		_, err = l.Next(context.Background())
		n++
	}
	var share *BadShareError
	if !errors.As(err, &share) {
		t.Fatalf("after %d batches: %v, want a BadShareError", n, err)
	}
	// Bad counters 0, 4, ..., 52: the first one read at 50 reads or later is 52.
	if share.Read != 53 || share.Bad != 14 {
		t.Errorf("stopped at %d of %d, want 14 of 53", share.Bad, share.Read)
	}
	for _, want := range []string{"14 of 53", "max_bad_share = 0.2", "sample 4 is broken"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message %q lacks %q", err, want)
		}
	}
	if _, again := l.Next(context.Background()); again != err {
		t.Errorf("the failure must stay, got %v", again)
	}
	l = newLoader(t, s, LoaderConfig{BatchSize: 4})
	if _, err := l.Next(context.Background()); !errors.As(err, &share) || share.Read != 1 {
		t.Errorf("share 0: got %v, want to stop at the first bad sample", err)
	}
}

func TestLoaderResumesExactly(t *testing.T) {
	w, err := scenes.New(scenes.Config{ValSamples: 10, TestSamples: 10}, 7)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := NewSceneStream(w, 50, TrainConfig{Seed: 7, Transform: transform.Train{Size: 32, ScaleMin: 0.5, Ops: 2, Level: 7}, Text: someText(12)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := LoaderConfig{BatchSize: 4, Workers: 3}
	key := func(b *Batch) string {
		images := b.Floats(batch.Images)
		return fmt.Sprint(b.Counter, b.End, b.Counters, b.Ints(batch.Tokens), b.Ints(batch.Lengths), b.Ints(batch.IDs), images[:50], images[len(images)-50:])
	}
	var all []string
	var at []uint64
	l := newLoader(t, stream, cfg)
	l.Start(0)
	for range 8 {
		at = append(at, l.Position())
		b := nextOf(t, l)
		all = append(all, key(b))
		l.Recycle(b)
	}
	cfg.Workers = 1
	for i, pos := range at {
		r := newLoader(t, stream, cfg)
		r.Start(pos)
		b, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if key(b) != all[i] {
			t.Errorf("batch %d differs when started at %d", i, pos)
		}
		r.Close()
	}
}

// TestLoaderResized: a loader that goes on with data of another length says so, one that goes on with the same or does not know says nothing.
func TestLoaderResized(t *testing.T) {
	saved := func(epoch int) loaderCounters {
		l := newLoader(t, numbered{epoch: epoch}, LoaderConfig{BatchSize: 2})
		l.Start(4)
		return *l.Counters().(*loaderCounters)
	}
	l := newLoader(t, numbered{epoch: 7}, LoaderConfig{BatchSize: 2})
	for _, c := range []struct {
		saved loaderCounters
		was   int
	}{{saved(5), 5}, {saved(7), 0}, {saved(9), 9}, {loaderCounters{Position: 4}, 0}} {
		*l.Counters().(*loaderCounters) = c.saved
		if err := l.Restored(); err != nil {
			t.Fatal(err)
		}
		if was, now := l.Resized(); was != c.was || now != 7 || l.Position() != 4 {
			t.Errorf("%+v: %d samples, now %d, position %d", c.saved, was, now, l.Position())
		}
	}
}

// TestLoaderPeek: what Peek shows is what Next returns, position and order are as without it, and after Rewind nothing of it is left.
func TestLoaderPeek(t *testing.T) {
	s := numbered{epoch: 100, size: 64, text: someText(8), bad: func(c uint64) bool { return c%7 == 1 }}
	cfg := LoaderConfig{BatchSize: 8, Workers: 2, MaxBadShare: 0.6}
	plain := newLoader(t, s, cfg)
	want := counters(t, plain, 12)
	l := newLoader(t, s, cfg)
	if l.Peek() != nil {
		t.Error("a loader that was not started shows a batch")
	}
	var got [][]int32
	shown := 0
	for k := range 12 {
		var ahead *Batch
		for range 200 { // it comes in its time
			if ahead = l.Peek(); ahead != nil || k == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if again := l.Peek(); ahead != nil && again != ahead {
			t.Fatalf("batch %d: two calls show two batches", k)
		}
		at := l.Position()
		b := nextOf(t, l)
		if ahead != nil && b != ahead {
			t.Fatalf("batch %d is not the one that was shown", k)
		}
		if ahead != nil {
			shown++
		}
		if at == l.Position() {
			t.Fatalf("batch %d does not move the position %d", k, at)
		}
		got = append(got, slices.Clone(b.Ints(batch.IDs)))
		l.Recycle(b)
	}
	if shown == 0 {
		t.Error("no batch was shown")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("with Peek the batches are\n%v, without\n%v", got, want)
	}
	for l.Peek() == nil {
		time.Sleep(time.Millisecond)
	}
	l.Rewind(Place{})
	if l.Peek() != nil {
		t.Error("after Rewind a batch of before is shown")
	}
	if first := counters(t, l, 1); !slices.Equal(first[0], want[0]) {
		t.Errorf("after Rewind the first batch is %v, want %v", first[0], want[0])
	}
}

func TestLoaderReusesMemory(t *testing.T) {
	l := newLoader(t, numbered{epoch: 100, size: 64, text: someText(8)}, LoaderConfig{BatchSize: 8, Workers: 1})
	seen := map[*Batch]bool{}
	for range 50 {
		b := nextOf(t, l)
		seen[b] = true
		l.Recycle(b)
	}
	if len(seen) > 5 {
		t.Errorf("%d batches were allocated for 50 steps", len(seen))
	}
}

// A batch that is given back twice, or that Peek has shown, is not made into two batches that are in use at a time.
func TestLoaderRecyclesOnce(t *testing.T) {
	l := newLoader(t, numbered{epoch: 100, size: 64, text: someText(8)}, LoaderConfig{BatchSize: 8, Workers: 1, Held: 2})
	next := func() *Batch {
		t.Helper()
		b := nextOf(t, l)
		return b
	}
	first := next()
	l.Recycle(first)
	l.Recycle(first)
	for l.Peek() == nil {
		time.Sleep(time.Millisecond)
	}
	l.Recycle(l.Peek())
	seen := map[*Batch]bool{}
	for range 8 { // none of which is given back
		b := next()
		if seen[b] {
			t.Fatal("a batch that is in use is given out again")
		}
		seen[b] = true
	}
}

func TestLoaderPaddingAndEnd(t *testing.T) {
	l := newLoader(t, numbered{epoch: 4, text: someText(5)}, LoaderConfig{BatchSize: 2})
	l.Start(9)
	b := nextOf(t, l)
	if want := []int32{2, 'n', '9', 0, 0, 2, 'n', '1', '0', 0}; !slices.Equal(b.Ints(batch.Tokens), want) {
		t.Errorf("tokens %v, want %v", b.Ints(batch.Tokens), want)
	}
	if !slices.Equal(b.Ints(batch.Lengths), []int32{3, 4}) || !slices.Equal(b.Counters, []uint64{9, 10}) || b.Counter != 9 || b.End != 11 || b.Epoch != 11.0/4 || b.Size != 2 {
		t.Errorf("got %+v", b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	l.Close()
	if _, err := l.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestIDs(t *testing.T) {
	tr := trainOf(t, memory(3, "a"), TrainConfig{Transform: transform.Train{Size: 4}})
	over, err := Overfit(tr, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Stream{tr, over} { // the ids of the source are dense numbers already
		b := batch.New(1, Column{Name: batch.IDs, Type: batch.Int32})
		for c := range uint64(6) {
			_, id, err := Describe(s, c)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Sample(c, b.Row(0)); err != nil || int64(b.Ints(batch.IDs)[0]) != id {
				t.Errorf("sample %d: id %d, want %d (%v)", c, b.Ints(batch.IDs)[0], id, err)
			}
		}
	}
	for _, id := range []int64{0, 5, 1<<31 - 1} {
		if got := HashID(id); int64(got) != id {
			t.Errorf("id %d: %d", id, got)
		}
	}
	seen := map[int32]bool{}
	for i := range int64(1000) {
		id := HashID(1<<31 + i<<12)
		if id < 0 || seen[id] {
			t.Errorf("hash %d of %d is negative or taken", id, 1<<31+i<<12)
		}
		seen[id] = true
	}
	if _, err := Overfit(tr, 0); err == nil {
		t.Error("no sample to overfit must fail")
	}
}

func TestNewLoaderRefuses(t *testing.T) {
	good := LoaderConfig{BatchSize: 2, Columns: oneView(numbered{})}
	for want, edit := range map[string]func(c *LoaderConfig){
		"batch size must be > 0 (got 0)": func(c *LoaderConfig) { c.BatchSize = 0 },
		"must be in [0, 1] (got 1.5)":    func(c *LoaderConfig) { c.MaxBadShare = 1.5 },
		"must be >= 0 (got -1, 0, 0)":    func(c *LoaderConfig) { c.Workers = -1 },
	} {
		cfg := good
		edit(&cfg)
		if _, err := NewLoader(numbered{epoch: 5}, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := NewLoader(numbered{}, good); err == nil {
		t.Error("an epoch of no sample must fail")
	}
	if _, err := NewLoader(nil, good); err == nil {
		t.Error("no stream must fail")
	}
}

// panicky is a stream whose samples panic now and then.
type panicky struct{ numbered }

func (p panicky) Sample(c uint64, row batch.Row) error {
	if c%4 == 0 {
		panic("foreign code")
	}
	return p.numbered.Sample(c, row)
}

// starved is a stream whose machine runs out of something at sample 5.
type starved struct {
	numbered
	err error
}

func (s starved) Sample(c uint64, row batch.Row) error {
	if c == 5 {
		return fmt.Errorf("data: image: %w", &fs.PathError{Op: "open", Path: "a.jpg", Err: s.err})
	}
	return s.numbered.Sample(c, row)
}

// TestLoaderStopsWhereTheMachineIsAtItsLimit: what has run out is not a bad sample, whatever share
// of them is allowed. A file that the disk cannot read is one.
func TestLoaderStopsWhereTheMachineIsAtItsLimit(t *testing.T) {
	for _, limit := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		l := newLoader(t, starved{numbered{epoch: 20}, limit}, LoaderConfig{BatchSize: 2, Workers: 3, MaxBadShare: 1})
		var err error
		for range 6 {
			if _, err = l.Next(context.Background()); err != nil {
				break
			}
		}
		bad, _, _ := l.Bad()
		switch {
		case limit == syscall.EIO && (err != nil || bad != 1):
			t.Errorf("%v: %v, %d bad samples, want one", limit, err, bad)
		case limit != syscall.EIO && (!errors.Is(err, limit) || bad != 0 || !strings.Contains(err.Error(), "ulimit -n")):
			t.Errorf("%v: got %v, %d bad samples", limit, err, bad)
		}
	}
}

func TestLoaderSurvivesPanics(t *testing.T) {
	l := newLoader(t, panicky{numbered{epoch: 8}}, LoaderConfig{BatchSize: 3, MaxBadShare: 0.5})
	if got, want := fmt.Sprint(counters(t, l, 2)), "[[1 2 3] [5 6 7]]"; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if bad, _, ex := l.Bad(); bad != 2 || !strings.Contains(ex[0].Err.Error(), "foreign code") {
		t.Errorf("%d bad: %v", bad, ex)
	}
}

func BenchmarkScenesLoader64(b *testing.B) {
	w, err := scenes.New(scenes.Config{}, 1)
	if err != nil {
		b.Fatal(err)
	}
	s, err := NewSceneStream(w, 10000, TrainConfig{Seed: 1, Transform: transform.Train{Size: 64, ScaleMin: 1}, Text: someText(30)})
	if err != nil {
		b.Fatal(err)
	}
	l, err := NewLoader(s, LoaderConfig{Columns: oneView(s), BatchSize: 96, Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		made := nextOf(b, l)
		l.Recycle(made)
	}
	b.ReportMetric(96*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

func TestLoaderResumesExactlyOverBadSamples(t *testing.T) {
	ds := memory(23, "a", "b", "c")
	for _, i := range []int{2, 3, 11} {
		ds.Images[i] = nil
	}
	tr, err := NewTrain(ds, TrainConfig{Seed: 9, Transform: transform.Train{Size: 4, ScaleMin: 0.5, Flip: true}, Text: someText(6)})
	if err != nil {
		t.Fatal(err)
	}
	for _, drop := range []bool{false, true} {
		cfg := LoaderConfig{BatchSize: 4, Workers: 3, MaxBadShare: 0.5, DropLast: drop}
		l := newLoader(t, tr, cfg)
		for range 20 {
			pos := l.Position()
			want := nextOf(t, l)
			r := newLoader(t, tr, cfg)
			r.Start(pos)
			got, err := r.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got.End != want.End || !slices.Equal(got.Counters, want.Counters) || !slices.Equal(got.Ints(batch.Tokens), want.Ints(batch.Tokens)) ||
				!slices.Equal(got.Floats(batch.Images), want.Floats(batch.Images)) || !slices.Equal(got.Ints(batch.IDs), want.Ints(batch.IDs)) {
				t.Errorf("drop %v: the batch from %d differs: %v to %d, want %v to %d", drop, pos, got.Counters, got.End, want.Counters, want.End)
			}
			r.Close()
			l.Recycle(want)
		}
	}
}

// TestLoaderGoesOnCounting: a loader that goes on judges the share of bad samples as one that was not stopped, and what was read twice
// after Rewind counts once. Of data of another length it counts anew.
func TestLoaderGoesOnCounting(t *testing.T) {
	s := numbered{epoch: 10000, size: 4, bad: func(c uint64) bool { return c == 70 || c == 6460 }}
	cfg := LoaderConfig{BatchSize: 64, Workers: 2, MaxBadShare: 0.02}
	l := newLoader(t, s, cfg)
	counters(t, l, 1)
	before := l.Place()
	counters(t, l, 1) // with sample 70
	l.Rewind(before)
	if bad, read, why := l.Bad(); bad != 0 || read != 64 || len(why) != 0 {
		t.Errorf("%d of %d bad after Rewind, %v; want 0 of 64", bad, read, why)
	}
	counters(t, l, 99)
	if bad, read, why := l.Bad(); bad != 1 || read != 6401 || len(why) != 1 || l.Position() != 6401 {
		t.Errorf("%d of %d bad at %d, %v; want 1 of 6401", bad, read, l.Position(), why)
	}
	saved := *l.Counters().(*loaderCounters)
	cfg.MaxBadShare = 0.01
	again := newLoader(t, s, cfg)
	*again.Counters().(*loaderCounters) = saved
	if err := again.Restored(); err != nil {
		t.Fatal(err)
	}
	counters(t, again, 1) // sample 6460 is the 60th of them
	if bad, read, why := again.Bad(); bad != 2 || read != 6466 || len(why) != 1 || why[0].Counter != 6460 {
		t.Errorf("%d of %d bad, %v; want 2 of 6466 and the last reason", bad, read, why)
	}
	longer := s
	longer.epoch = 20000
	other := newLoader(t, longer, cfg)
	*other.Counters().(*loaderCounters) = saved
	if err := other.Restored(); err != nil {
		t.Fatal(err)
	}
	if _, read, _ := other.Bad(); read != 0 {
		t.Errorf("%d samples of other data count as read", read)
	}
	if _, err := other.Next(t.Context()); !errors.As(err, new(*BadShareError)) {
		t.Errorf("1 of 60 bad samples, of other data: %v", err)
	}
	if bad, read, _ := other.Bad(); bad != 1 || read != 60 {
		t.Errorf("%d of %d bad at the end", bad, read)
	}
	// What ended it does not count in a checkpoint, which is of the place before.
	if c := other.Counters().(*loaderCounters); c.Bad != 0 || c.Read != 0 || c.Position != 6401 {
		t.Errorf("saved %+v", c)
	}
}
