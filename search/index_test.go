package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

var (
	_ Pool       = (*features.Matrix)(nil)
	_ rowsReader = (*features.Matrix)(nil)
)

// built returns an index of a mixture and its rows.
func built(t testing.TB, m Metric, n, d int, o BuildOptions) (*Index, []float32) {
	t.Helper()
	x := mixture(rand.New(rand.NewPCG(2, uint64(n))), n, d, 20, 4, .2)
	o.Metric = m
	index := check.Get(Build(context.Background(), engine(t, 2), pool(t, x, d), o))(t)
	return index, x
}

// TestIndexRecall: the recall that an index tells is that of other queries of the kind too, and
// reaches what was asked for.
func TestIndexRecall(t *testing.T) {
	const n, d, q, k = 4000, 24, 300, 10
	for _, m := range metrics {
		for _, want := range []float64{.8, .99} {
			x := mixture(rand.New(rand.NewPCG(2, 1)), n+q, d, 20, 4, .2)
			p, queries := pool(t, x[:n*d], d), x[n*d:]
			e := engine(t, 2)
			index := check.Get(Build(context.Background(), e, p, BuildOptions{Metric: m, Recall: want}))(t)
			s := index.Stats()
			if s.Recall < want || s.K != k || s.Queries != sampleQueries || s.Cells != 126 || s.Probes >= s.Cells {
				t.Errorf("%s: %+v", m, s)
			}
			exact := check.Get(Exact(context.Background(), e, p, queries, Options{Metric: m, K: k}))(t)
			got := check.Get(index.Search(context.Background(), e, queries, Options{K: k}))(t)
			found := 0
			for i, v := range got.Scores {
				if v >= exact.Scores[i/k*k+k-1] {
					found++
				}
			}
			if r := float64(found) / (q * k); r < s.Recall-.05 {
				t.Errorf("%s: recall %v of other queries, %v of the build", m, r, s.Recall)
			}
		}
	}
}

// TestIndexOfAllCellsIsExact: with every cell looked at, only the codes could lose a row, for
// which more are kept than are asked for.
func TestIndexOfAllCellsIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, m := range metrics {
		for range 10 {
			n, d := 30+r.IntN(800), 2+r.IntN(60)
			index, x := built(t, m, n, d, BuildOptions{})
			k := 1 + r.IntN(min(n-1, 20))
			queries, skip := x[:10*d], []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
			want := check.Get(Exact(context.Background(), engine(t, 1), index.pool, queries,
				Options{Metric: m, K: k, Skip: skip}))(t)
			got, err := index.find(context.Background(), nil, queries, Options{K: k, Skip: skip}, index.header.Cells)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
				t.Fatalf("%s, %d x %d, k = %d: rows %v, want %v", m, n, d, k, got.Rows, want.Rows)
			}
		}
	}
}

// TestIndexThreads: threads, company and goroutines change no bit, of an index or of hits.
func TestIndexThreads(t *testing.T) {
	const n, d, k = 3000, 20, 5
	r := rand.New(rand.NewPCG(2, 3))
	for _, m := range metrics {
		x := mixture(r, n, d, 20, 4, .2)
		queries := normal(r, 600, d)
		var first *Index
		var want *Hits
		for _, threads := range []int{1, 2, 5} {
			e := engine(t, threads)
			index := check.Get(Build(context.Background(), e, pool(t, x, d), BuildOptions{Metric: m, Seed: 3}))(t)
			got := check.Get(index.Search(context.Background(), e, queries, Options{K: k}))(t)
			if first == nil {
				first, want = index, got
			}
			if !slices.Equal(index.codes, first.codes) || !slices.Equal(index.rows, first.rows) ||
				!slices.Equal(index.centres, first.centres) || fmt.Sprint(index.header) != fmt.Sprint(first.header) {
				t.Fatalf("%s: %d threads build another index", m, threads)
			}
			if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
				t.Fatalf("%s: %d threads find other rows", m, threads)
			}
		}
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				got, err := first.Search(context.Background(), nil, queries[i*d:(i+1)*d], Options{K: k})
				if err != nil {
					t.Error(err)
					return
				}
				if rows, scores := want.Of(i); !slices.Equal(got.Rows, rows) || !slices.Equal(got.Scores, scores) {
					t.Errorf("%s: query %d alone has other hits than among others", m, i)
				}
			})
		}
		group.Wait()
	}
}

// TestIndexOfOddPools: rows that are all equal, fewer rows than codes hold, more neighbours than a
// cell has.
func TestIndexOfOddPools(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	e := engine(t, 2)
	for name, x := range map[string][]float32{
		"equal rows": slices.Repeat(normal(r, 1, 6), 500),
		"two rows":   normal(r, 2, 6),
		"far rows":   append(normal(r, 50, 6), slices.Repeat([]float32{1e4, 0, 0, 0, 0, 1}, 50)...),
		"large rows": {1e18, 0, 0, 0, 0, 0, 0, 1e18, 0, 0, 0, 0, 0, 0, 1e-18, 0, 0, 0},
		"tiny rows":  {1e-30, 0, 0, 0, 0, 0, 0, 1e-30, 0, 0, 0, 0, 0, 0, 1e-38, 0, 0, 0},
	} {
		for _, m := range metrics {
			n := len(x) / 6
			index, err := Build(context.Background(), e, pool(t, x, 6), BuildOptions{Metric: m})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, m, err)
			}
			got, err := index.Search(context.Background(), e, x, Options{K: n})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, m, err)
			}
			want, err := Exact(context.Background(), e, pool(t, x, 6), x, Options{Metric: m, K: n})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, m, err)
			}
			if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
				t.Errorf("%s, %s: all rows of an index differ from all rows", name, m)
			}
		}
	}
}

// TestRecallOfASearch: a search may ask for more than the index was built for.
func TestRecallOfASearch(t *testing.T) {
	index, x := built(t, Cosine, 3000, 24, BuildOptions{Recall: .5})
	low := check.Get(index.probes(0))(t)
	high, err := index.probes(.999)
	if err != nil || high <= low || low != index.Stats().Probes {
		t.Errorf("looks at %d and %d cells: %v", low, high, err)
	}
	if all, err := index.probes(1); err != nil || all < high {
		t.Errorf("looks at %d cells for all: %v", all, err)
	}
	if _, err := index.Search(context.Background(), nil, x[:24], Options{K: 1, Recall: 1.5}); err == nil ||
		!strings.Contains(err.Error(), "recall must be above 0 and at most 1 (got 1.5)") {
		t.Errorf("got %v", err)
	}
}

// TestRecallOfFewerRows: a search for fewer rows than recall was measured with finds the nearest as often as the index
// tells, where cells hold fewer rows than that too.
func TestRecallOfFewerRows(t *testing.T) {
	const n, d, q = 12, 8, 200
	x := mixture(rand.New(rand.NewPCG(2, 1)), n+q, d, 20, 4, .2)
	p, queries := pool(t, x[:n*d], d), x[n*d:]
	e := engine(t, 2)
	index := check.Get(Build(context.Background(), e, p, BuildOptions{Metric: Cosine}))(t)
	exact := check.Get(Exact(context.Background(), e, p, queries, Options{Metric: Cosine, K: 1}))(t)
	got := check.Get(index.Search(context.Background(), e, queries, Options{K: 1}))(t)
	found := 0
	for i, v := range got.Scores {
		if v >= exact.Scores[i] {
			found++
		}
	}
	if r, s := float64(found)/q, index.Stats(); r < s.Recall-.05 {
		t.Errorf("recall %v of the nearest row, %v of %d rows by the build", r, s.Recall, s.K)
	}
}

func TestIndexErrors(t *testing.T) {
	index, x := built(t, Cosine, 300, 8, BuildOptions{})
	nan := slices.Clone(x)
	nan[8*123+4] = float32(math.NaN())
	zero := slices.Clone(x)
	clear(zero[8*299:])
	e := engine(t, 2)
	search := func(q []float32, o Options) func() error {
		return func() error { _, err := index.Search(context.Background(), e, q, o); return err }
	}
	build := func(x []float32, o BuildOptions) func() error {
		o.Metric = Cosine
		return func() error { _, err := Build(context.Background(), e, pool(t, x, 8), o); return err }
	}
	for _, c := range []struct {
		do   func() error
		want string
	}{
		{search(x[:7], Options{K: 1}), "7 numbers are not queries of the width 8"},
		{search(make([]float32, 8), Options{K: 1}), "row 0 of the queries is zero"},
		{search(nan[8*123:8*124], Options{K: 1}), "row 0 of the queries is not finite (got NaN in column 4)"},
		{search(x[:8], Options{K: 301}), "k = 301 neighbours among 300 rows: ask for at most 300"},
		{search(x[:8], Options{K: 1, Metric: L2}), "the index was built for the metric cosine (got \"l2\")"},
		{build(nil, BuildOptions{}), "the pool is empty"},
		{build(x[:8], BuildOptions{}), "an index of one row"},
		{build(nan, BuildOptions{}), "row 123 of the pool is not finite (got NaN in column 4)"},
		{build(zero, BuildOptions{}), "row 299 of the pool is zero"},
		{build(x, BuildOptions{Cells: -1}), "cells must be in [1, 65536] (got -1)"},
		{build(x, BuildOptions{Recall: 2}), "recall must be above 0 and at most 1 (got 2)"},
		{build(x, BuildOptions{K: 300}), "k = 300 neighbours among 300 rows: choose 1 to 299"},
		{build(x, BuildOptions{Queries: x[:9]}), "9 numbers are not queries of the width 8"},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "search: ") {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestBuildProgressAndCancel(t *testing.T) {
	x := normal(rand.New(rand.NewPCG(2, 5)), 3000, 16)
	e := engine(t, 2)
	var stages []string
	_, err := Build(context.Background(), e, pool(t, x, 16),
		BuildOptions{Metric: L2, Progress: func(stage string, done, of int) {
			if len(stages) == 0 || stages[len(stages)-1] != stage {
				stages = append(stages, stage)
			}
			if done < 1 || done > of {
				t.Errorf("%s: %d of %d", stage, done, of)
			}
		}})
	if want := []string{"cells", "assign", "encode", "exact", "recall"}; err != nil || !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v: %v", stages, want, err)
	}
	for _, at := range stages {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Build(ctx, e, pool(t, x, 16), BuildOptions{Metric: L2, Progress: func(stage string, _, _ int) {
			if stage == at {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in %s: %v", at, err)
		}
		cancel()
	}
}

// TestScoresAreThoseOfScoring: the names mean what they mean elsewhere.
func TestScoresAreThoseOfScoring(t *testing.T) {
	const n, d = 50, 12
	r := rand.New(rand.NewPCG(2, 6))
	x, q := normal(r, n, d), normal(r, 1, d)
	e := engine(t, 1)
	for _, m := range metrics {
		a, b := slices.Clone(x), slices.Clone(q)
		if m == Cosine { // which scoring takes of unit rows
			p := points{metric: Cosine}
			for i := range n {
				check.Get(p.place(ofPool, i, a[i*d:(i+1)*d]))(t)
			}
			check.Get(p.place(ofQueries, 0, b))(t)
		}
		want := make([]float32, n)
		s := scoring.Score{Space: space.Space{Dim: d, Euclid: m != Cosine}, Terms: []scoring.Term{{Kind: scoring.Kind(m), Weight: 1}}}
		check.OK(t, s.Rows(e, b, 1, a, n, want))
		got := check.Get(Exact(context.Background(), e, pool(t, x, d), q, Options{Metric: m, K: n}))(t)
		for i, row := range got.Rows {
			if !(math.Abs(float64(got.Scores[i]-want[row])) <= 1e-5) {
				t.Errorf("%s: row %d has score %v, %v in scoring", m, row, got.Scores[i], want[row])
			}
		}
	}
}

// TestRotation: it keeps lengths and products, mixes all channels, and another seed is another one.
func TestRotation(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, d := range []int{1, 2, 3, 19, 64, 100, 384} {
		p, other := newRotation(5, d), newRotation(6, d)
		x, y := normal(r, 1, d), normal(r, 1, d)
		want, xx := vector.Dot(x, y), vector.SumSq(x)
		z := slices.Clone(x)
		p.apply(x)
		p.apply(y)
		other.apply(z)
		if got := vector.Dot(x, y); !(math.Abs(float64(got-want)) <= 1e-5*xx) || !(math.Abs(vector.SumSq(x)-xx) <= 1e-5*xx) {
			t.Errorf("%d channels: product %v, want %v", d, got, want)
		}
		if d > 3 && slices.Equal(x, z) {
			t.Errorf("%d channels: two seeds are one rotation", d)
		}
		one := make([]float32, d)
		one[0] = 1
		p.apply(one)
		for c, v := range one {
			if d >= 64 && math.Abs(float64(v)) > 8/math.Sqrt(float64(d)) {
				t.Errorf("%d channels: the first one stays together: %v in channel %d", d, v, c)
			}
		}
	}
}

// TestBitsEstimate: over rotations the estimate of a product is right on average, and its error is that of the paper:
// one over the root of the channels, for a query of length 1 and a row of length 1 (theorem 3.2).
func TestBitsEstimate(t *testing.T) {
	const d, rotations = 128, 2000
	r := rand.New(rand.NewPCG(2, 10))
	x, y := normal(r, 1, d), normal(r, 1, d)
	toUnit(x, math.Sqrt(vector.SumSq(x)))
	toUnit(y, math.Sqrt(vector.SumSq(y)))
	for c := range y { // rows that are near
		y[c] = .6*x[c] + .8*y[c]
	}
	want := float64(vector.Dot(x, y))
	bits, codes, dot := make([]uint8, bitWidth(d)), make([]int8, 8*bitWidth(d)), make([]int32, 1)
	var sum, square float64
	for seed := range rotations {
		p := newRotation(uint64(seed), d)
		a, b := slices.Clone(x), slices.Clone(y)
		p.apply(a)
		p.apply(b)
		row := codeBits(bits, a)
		scale, all := codeBitQuery(codes, b)
		vector.DotBits(dot, bits, codes)
		got := float64(row*scale*float32(2*dot[0]-all)) - want
		sum, square = sum+got, square+got*got
	}
	deviation := math.Sqrt(square / rotations)
	if mean := sum / rotations; !(math.Abs(mean) <= 4*deviation/math.Sqrt(rotations)) {
		t.Errorf("the estimate of %v is off by %v on average, its deviation is %v", want, mean, deviation)
	}
	// tan of the angle between r and its signs, sqrt(pi/2 - 1), times the part of y that is not along x.
	across := math.Sqrt(vector.SumSq(y) - want*want)
	if bound := math.Sqrt(math.Pi/2-1) * across / math.Sqrt(d-1); !(deviation <= 1.15*bound && deviation >= bound/1.15) {
		t.Errorf("deviation %v, want about %v", deviation, bound)
	}
}

// TestBits: an index of bits finds what one of bytes finds, on any number of threads, when it is opened too, in a
// fraction of the memory.
func TestBits(t *testing.T) {
	const n, d, q, k = 6000, 128, 200, 10
	for _, m := range metrics {
		x := mixture(rand.New(rand.NewPCG(2, 11)), n+q, d, 20, 12, .2)
		p, queries := pool(t, x[:n*d], d), x[n*d:]
		e := engine(t, 2)
		o := BuildOptions{Metric: m, Recall: .99, Cells: 32, Codes: Bits}
		index := check.Get(Build(t.Context(), e, p, o))(t)
		exact := check.Get(Exact(t.Context(), e, p, queries, Options{Metric: m, K: k}))(t)
		got := check.Get(index.Search(t.Context(), e, queries, Options{K: k}))(t)
		found := 0
		for i, v := range got.Scores {
			if v >= exact.Scores[i/k*k+k-1] {
				found++
			}
		}
		if r := float64(found) / (q * k); r < .98 {
			t.Errorf("%s: recall %v, %v of the build", m, r, index.Recall())
		}
		s := index.Stats()
		if rows := s.Bytes - int64(4*(32*d+33)); s.Codes != Bits || s.Recall < .99 || rows > n*(d/8+16) {
			t.Errorf("%s: %+v", m, s)
		}
		path := Beside(filepath.Join(t.TempDir(), "x.npy"))
		check.OK(t, index.Save(path))
		opened := check.Get(reopened(t, path, p))(t)
		one := check.Get(opened.Search(t.Context(), nil, queries, Options{K: k}))(t)
		if !slices.Equal(one.Rows, got.Rows) || !slices.Equal(one.Scores, got.Scores) || opened.Stats().Codes != Bits {
			t.Errorf("%s: the opened index has other hits", m)
		}
		check.OK(t, opened.Close())
	}
	_, err := Build(t.Context(), engine(t, 1), pool(t, make([]float32, 8), 2), BuildOptions{Metric: L2, Codes: "nibbles"})
	check.Error(t, err, `search: no codes "nibbles": choose bytes or bits`)
}
