package kernel

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

func newTestEngine(t testing.TB, threads int) *Engine {
	t.Helper()
	e, err := New(Options{Backend: "plain", Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// span is one call of a body.
type span struct{ worker, lo, hi int }

// spans runs For and returns the calls by worker.
func spans(e *Engine, n, grain int) []span {
	var mu sync.Mutex
	byWorker := map[int][]span{}
	e.For(n, grain, func(worker, lo, hi int) {
		mu.Lock()
		defer mu.Unlock()
		byWorker[worker] = append(byWorker[worker], span{worker, lo, hi})
	})
	var out []span
	for w := range e.Threads() {
		out = append(out, byWorker[w]...)
	}
	return out
}

func TestForSplit(t *testing.T) {
	tests := []struct {
		threads, n, grain int
		want              []span
	}{
		{4, 0, 1, nil},
		{4, -3, 1, nil},
		{4, 1, 1, []span{{0, 0, 1}}},
		{4, 10, 10, []span{{0, 0, 10}}},
		{4, 10, 0, []span{{0, 0, 2}, {1, 2, 5}, {2, 5, 7}, {3, 7, 10}}},
		{4, 10, 9, []span{{0, 0, 5}, {1, 5, 10}}},
		{4, 3, 1, []span{{0, 0, 1}, {1, 1, 2}, {2, 2, 3}}},
		{1, 100, 1, []span{{0, 0, 100}}},
		{3, 100, 25, []span{{0, 0, 33}, {1, 33, 66}, {2, 66, 100}}},
	}
	for _, tt := range tests {
		e := newTestEngine(t, tt.threads)
		for range 20 { // the same every time
			if got := spans(e, tt.n, tt.grain); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("For(%d, %d) on %d threads: got %v, want %v", tt.n, tt.grain, tt.threads, got, tt.want)
			}
		}
	}
}

// Every item once, after all kinds of pauses: workers that spin, that sleep and
// that are about to.
func TestForCoversAfterPauses(t *testing.T) {
	e := newTestEngine(t, 4)
	count := make([]int32, 1000)
	body := func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			count[i]++
		}
	}
	for round := range 300 {
		e.For(len(count), 1, body)
		if round%10 == 0 {
			time.Sleep(time.Duration(round) * time.Microsecond)
		}
	}
	for i, c := range count {
		if c != 300 {
			t.Fatalf("item %d was done %d times, want 300", i, c)
		}
	}
}

func TestForAllocatesNothing(t *testing.T) {
	e := newTestEngine(t, 3)
	body := func(_, lo, hi int) {}
	if n := allocs.PerRun(100, func() { e.For(300, 1, body) }); n != 0 {
		t.Errorf("%v allocations a call, want 0", n)
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	e := newTestEngine(t, 3)
	sentinel := errors.New("bad row")
	for bad := range 3 {
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || !errors.Is(err, sentinel) || !strings.Contains(err.Error(), "pool_test.go") {
					t.Errorf("worker %d: got %v, want the body's error with its stack", bad, err)
				}
			}()
			e.For(3, 1, func(worker, _, _ int) {
				if worker == bad {
					panic(sentinel)
				}
			})
			t.Errorf("worker %d: no panic", bad)
		}()
		// The engine goes on.
		if got := spans(e, 3, 1); len(got) != 3 {
			t.Errorf("after a panic: got %v", got)
		}
	}
}

func TestNestedForIsRefused(t *testing.T) {
	e := newTestEngine(t, 2)
	var refused atomic.Int32
	e.For(2, 1, func(_, _, _ int) {
		defer func() {
			if v := recover(); v != nil && strings.Contains(fmt.Sprint(v), "inside For") {
				refused.Add(1)
			}
		}()
		e.For(2, 1, func(_, _, _ int) {})
	})
	if refused.Load() != 2 {
		t.Errorf("%d of 2 nested calls were refused", refused.Load())
	}
}

// GemmSerial of several workers at once gives the bits of one alone.
func TestGemmSerialInsideFor(t *testing.T) {
	eachBackend(t, func(t *testing.T, e *Engine) {
		const items, m, n, k = 40, 65, 33, 64
		a, b := gemm.Values(items*m*k, 1), gemm.Values(items*n*k, 2)
		got, want := make([]float32, items*m*n), make([]float32, items*m*n)
		one := func(c []float32, i int) {
			e.GemmSerial(false, true, m, n, k, 0.125, a[i*m*k:], k, b[i*n*k:], k, 0, c[i*m*n:], n)
		}
		for i := range items {
			one(want, i)
		}
		e.For(items, 1, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				one(got, i)
			}
		})
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("element %d: %v inside For, %v outside", i, got[i], want[i])
			}
		}
	})
}

func BenchmarkFor(b *testing.B) {
	for threads := 1; threads <= 2; threads++ {
		b.Run(fmt.Sprintf("%dthreads", threads), func(b *testing.B) {
			e := newTestEngine(b, threads)
			body := func(_, lo, hi int) {}
			b.ReportAllocs()
			for range b.N {
				e.For(1000, 1, body)
			}
		})
	}
}

// TestCallerHelps runs a loop while no worker comes: the caller does all parts, each
// under the number of its worker.
func TestCallerHelps(t *testing.T) {
	p := &pool{workers: make([]worker, 3), done: make(chan struct{}, 1)}
	for range 3 {
		var got []span
		p.run(10, 1, 3, func(worker, lo, hi int) { got = append(got, span{worker, lo, hi}) })
		if want := []span{{0, 0, 3}, {1, 3, 6}, {2, 6, 10}}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// TestEveryPartOnce mixes loops of all lengths, so that workers come early, late and
// not at all, and counts what each part did.
func TestEveryPartOnce(t *testing.T) {
	e := newTestEngine(t, 3)
	var count [3]atomic.Int64
	var spin int
	body := func(worker, _, _ int) {
		for range spin * (worker + 1) {
			pause()
		}
		count[worker].Add(1)
	}
	const rounds = 5000
	for round := range rounds {
		spin = round * 7 % 300
		e.For(3, 1, body)
		for i := range count {
			if n := count[i].Load(); n != int64(round+1) {
				t.Fatalf("after %d loops part %d was done %d times", round+1, i, n)
			}
		}
		if round%1000 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
