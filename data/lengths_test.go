package data

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/batch"
)

// worded is a stream of texts whose lengths are any, of which some are bad.
type worded struct {
	epoch int
	bad   func(c uint64) bool
}

func (w worded) Columns() []Column {
	return []Column{{Name: batch.IDs, Type: batch.Int32}, {Name: batch.Lengths, Type: batch.Int32}, {Name: batch.SecondLengths, Type: batch.Int32}}
}

// texts are the lengths of both texts of sample c.
func (w worded) texts(c uint64) (first, second int) { return int(c*7919%13) + 2, int(c*104729%11) + 2 }

func (w worded) Sample(c uint64, row batch.Row) error {
	if w.bad != nil && w.bad(c) {
		return errors.New("bad")
	}
	a, b := w.texts(c)
	row.Set(batch.IDs, int32(c))
	row.Set(batch.Lengths, int32(a))
	row.Set(batch.SecondLengths, int32(b))
	return nil
}

func (w worded) EpochSamples() int { return w.epoch }

// class is which of the lengths 5, 9 and more hold both texts of sample c.
func (w worded) class(c uint64) int {
	switch a, b := w.texts(c); {
	case max(a, b) <= 5:
		return 0
	case max(a, b) <= 9:
		return 1
	}
	return 2
}

// lengthsOf are the orders of a stream of n samples, of which an epoch is whole batches or not.
func lengthsOf(n int, drop bool, seed uint64) *byLength {
	s := worded{epoch: n}
	return newByLength(s, LoaderConfig{BatchSize: 4, Columns: s.Columns(), DropLast: drop, Lengths: []int{5, 9}, Seed: seed})
}

// TestByLength: each window of 50 batches has its own samples, and each batch those of one length, in their order, but
// for one batch between two lengths. What fills no batch at the end of an epoch is what it was. Positions that are
// asked for in any order, by several goroutines, and by another loader, have the same samples; another seed orders
// the batches anew.
func TestByLength(t *testing.T) {
	for _, x := range []struct {
		n, windows int
		drop       bool
	}{{530, 3, true}, {530, 0, false}, {201, 2, true}, {4, 1, true}, {7, 1, true}} {
		o, other := lengthsOf(x.n, x.drop, 3), lengthsOf(x.n, x.drop, 3)
		all := make([]uint64, 3*x.n)
		for c := range all {
			all[c] = o.At(uint64(c))
		}
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() {
				for c := len(all) - 1 - k; c >= 0; c -= 3 {
					if got := other.At(uint64(c)); got != all[c] {
						t.Errorf("%+v: position %d has sample %d and %d", x, c, all[c], got)
					}
				}
			})
		}
		wg.Wait()
		for start := 0; start < len(all); {
			size := 200
			if x.drop {
				size = min(size, (start/x.n+1)*x.n-start)
			}
			if start+size > len(all) {
				break
			}
			checkWindow(t, all[start:start+size], uint64(start), fmt.Sprintf("%+v, window at %d", x, start))
			start += size
		}
	}
	a, b := lengthsOf(530, true, 3), lengthsOf(530, true, 4)
	same := 0
	for c := range uint64(200) {
		if a.At(c) == b.At(c) {
			same++
		}
	}
	if same > 100 {
		t.Errorf("%d of 200 samples stand where they stood with another seed", same)
	}
}

// checkWindow checks the samples of a window that begins at start.
func checkWindow(t *testing.T, got []uint64, start uint64, at string) {
	t.Helper()
	full := len(got) / 4 * 4
	sorted := slices.Sorted(slices.Values(got[:full]))
	for i, c := range sorted {
		if c != start+uint64(i) {
			t.Fatalf("%s: sample %d is not there once", at, start+uint64(i))
		}
	}
	for i, c := range got[full:] {
		if c != start+uint64(full+i) {
			t.Errorf("%s: sample %d fills no batch, want %d", at, c, start+uint64(full+i))
		}
	}
	var byClass [3][]uint64 // in the order of the stream
	for c := start; c < start+uint64(full); c++ {
		k := worded{}.class(c)
		byClass[k] = append(byClass[k], c)
	}
	want := slices.Concat(byClass[:]...)
	batches := map[[4]uint64]bool{}
	for b := range slices.Chunk(want, 4) {
		batches[[4]uint64(b)] = true
	}
	for b := range slices.Chunk(got[:full], 4) {
		if !batches[[4]uint64(b)] {
			t.Errorf("%s: a batch of %v, not one of those in the order of lengths", at, b)
		}
	}
	if full > 40 && slices.Equal(got[:full], want) {
		t.Errorf("%s: batches stand in the order of their lengths", at)
	}
}

// TestByLengthReadsTextsAlone: which sample stands at a position is asked of the columns of lengths, and of no other; a
// sample is asked for its length once a window, and a bad one stands somewhere.
func TestByLengthReadsTextsAlone(t *testing.T) {
	s := &asked{worded: worded{epoch: 40, bad: func(c uint64) bool { return c == 3 }}}
	o := newByLength(s, LoaderConfig{BatchSize: 4, Columns: s.Columns(), DropLast: true, Lengths: []int{5}})
	seen := map[uint64]bool{}
	for c := range uint64(40) {
		seen[o.At(c)] = true
	}
	if len(seen) != 40 || s.whole != 0 || s.calls != 40 {
		t.Errorf("%d samples, %d were read whole, %d calls", len(seen), s.whole, s.calls)
	}
	if n := testing.AllocsPerRun(20, func() { o.At(7) }); n != 0 {
		t.Errorf("%v allocations a position", n)
	}
}

// asked counts what is asked of a stream.
type asked struct {
	worded
	calls, whole int
}

func (a *asked) Sample(c uint64, row batch.Row) error {
	a.calls++
	if row.Ints(batch.IDs) != nil {
		a.whole++
	}
	return a.worded.Sample(c, row)
}
