package search

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// TestExactIsTheOracle compares rows and scores with sorting all rows, over random shapes.
func TestExactIsTheOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	e := engine(t, 3)
	for range 60 {
		n, d, q := 1+r.IntN(400), 1+r.IntN(70), 1+r.IntN(9)
		x, queries := normal(r, n, d), normal(r, q, d)
		k := 1 + r.IntN(n)
		var skip []int32
		if n > 1 && r.IntN(2) == 0 {
			skip = make([]int32, q)
			for i := range skip {
				skip[i] = int32(r.IntN(n+1) - 1)
			}
			k = min(k, n-1)
		}
		for _, m := range metrics {
			got, err := Exact(context.Background(), e, pool(t, x, d), queries, Options{Metric: m, K: k, Skip: skip})
			if err != nil {
				t.Fatal(err)
			}
			for i := range q {
				own := int32(-1)
				if skip != nil {
					own = skip[i]
				}
				wantRows, wantScores := naive(m, x, d, queries[i*d:(i+1)*d], k, own)
				rows, scores := got.Of(i)
				for j, s := range scores {
					if !(math.Abs(float64(s)-wantScores[j]) <= 1e-6*max(1, math.Abs(wantScores[j]))) {
						t.Fatalf("%s, %d x %d, query %d, place %d: score %v, want %v", m, n, d, i, j, s, wantScores[j])
					}
				}
				if !slices.Equal(rows, wantRows) && d > 1 { // with one column nearly all cosines are equal
					t.Fatalf("%s, %d x %d, query %d: rows %v, want %v", m, n, d, i, rows, wantRows)
				}
			}
		}
	}
}

// TestExactTies: of equal rows the lower come first, also when they lie in other blocks and
// on other threads and are more than what is kept.
func TestExactTies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, d, k = 20000, 16, 50
	row := normal(r, 1, d)
	x := normal(r, n, d)
	var want []int32
	for i := 37; i < n; i += 101 {
		copy(x[i*d:], row)
		if len(want) < k {
			want = append(want, int32(i))
		}
	}
	for _, m := range []Metric{Cosine, L2} {
		for _, queries := range [][]float32{row, slices.Repeat(row, 70)} {
			for threads := 1; threads <= 3; threads++ {
				got := check.Get(Exact(context.Background(), engine(t, threads), pool(t, x, d), queries,
					Options{Metric: m, K: k}))(t)
				for q := range len(queries) / d {
					if rows, _ := got.Of(q); !slices.Equal(rows, want) {
						t.Fatalf("%s, %d threads: rows %v, want %v", m, threads, rows, want)
					}
				}
			}
		}
	}
}

// TestExactThreads: the number of threads changes no bit, and neither does what else is asked.
func TestExactThreads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	const n, d, q, k = 9000, 33, 700, 7
	x, queries := normal(r, n, d), normal(r, q, d)
	for _, m := range metrics {
		var want *Hits
		for _, threads := range []int{1, 2, 5} {
			got := check.Get(Exact(context.Background(), engine(t, threads), pool(t, x, d), queries,
				Options{Metric: m, K: k}))(t)
			if want == nil {
				want = got
			}
			if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
				t.Fatalf("%s: %d threads give other hits than one", m, threads)
			}
		}
		e := engine(t, 2)
		for _, i := range []int{0, 511, 512, 699} {
			got, err := Exact(context.Background(), e, pool(t, x, d), queries[i*d:(i+1)*d], Options{Metric: m, K: k})
			if err != nil {
				t.Fatal(err)
			}
			if rows, scores := want.Of(i); !slices.Equal(got.Rows, rows) || !slices.Equal(got.Scores, scores) {
				t.Fatalf("%s: query %d alone has other hits than among others", m, i)
			}
		}
	}
}

// TestExactFarFromOrigin: distances that are small beside the lengths of rows are kept apart.
func TestExactFarFromOrigin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	const n, d, k = 3000, 8, 5
	x := normal(r, n, d)
	for i := range x {
		x[i] += 1000
	}
	queries := slices.Clone(x[:20*d])
	got := check.Get(Exact(context.Background(), engine(t, 2), pool(t, x, d), queries, Options{Metric: L2, K: k}))(t)
	for i := range 20 {
		want, _ := naive(L2, x, d, queries[i*d:(i+1)*d], k, -1)
		if rows, _ := got.Of(i); !slices.Equal(rows, want) {
			t.Fatalf("query %d: rows %v, want %v", i, rows, want)
		}
	}
}

// TestCosineOfShortRows: a direction is one however short the rows are.
func TestCosineOfShortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	const n, d, k = 40, 8, 6
	x, e := normal(r, n, d), engine(t, 2)
	want := check.Get(Exact(context.Background(), e, pool(t, x, d), x[:5*d], Options{Metric: Cosine, K: k}))(t)
	for _, scale := range []float32{1e-18, 1e-25, 1e-30, 1e-40} {
		short := slices.Clone(x)
		for i := range short {
			short[i] *= scale
		}
		for name, pool := range map[string]Pool{"rows": pool(t, short, d), "queries": pool(t, x, d)} {
			got, err := Exact(context.Background(), e, pool, short[:5*d], Options{Metric: Cosine, K: k})
			if err != nil {
				t.Errorf("%s of %v: %v", name, scale, err)
				continue
			}
			for i, s := range got.Scores {
				// a number of 1e-40 has five digits
				if math.Abs(float64(s-want.Scores[i])) > 1e-4 || got.Rows[i] != want.Rows[i] {
					t.Errorf("%s of %v: hit %d is row %d with %v, want row %d with %v", name, scale, i, got.Rows[i], s,
						want.Rows[i], want.Scores[i])
				}
			}
		}
	}
}

func TestExactProgressAndCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	e := engine(t, 2)
	x := normal(r, 9000, 64)
	var last, total int
	o := Options{Metric: Inner, K: 1, Progress: func(done, of int) {
		if done <= last || total != 0 && of != total {
			t.Errorf("progress went from %d of %d to %d of %d", last, total, done, of)
		}
		last, total = done, of
	}}
	if _, err := Exact(context.Background(), e, pool(t, x, 64), normal(r, 1100, 64), o); err != nil || last != total ||
		total == 0 {
		t.Errorf("ended at %d of %d: %v", last, total, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = func(int, int) { cancel() }
	if _, err := Exact(ctx, e, pool(t, x, 64), normal(r, 1100, 64), o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestExactErrors(t *testing.T) {
	e := engine(t, 2)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	good := []float32{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name string
		x, q []float32
		o    Options
		want string
	}{
		{"no metric", good, good, Options{K: 1}, "no metric \"\": choose cosine, inner or l2"},
		{"an unknown metric", good, good, Options{Metric: "dot", K: 1}, "no metric \"dot\""},
		{"an empty pool", nil, good, Options{Metric: L2, K: 1}, "the pool is empty"},
		{"no queries", good, nil, Options{Metric: L2, K: 1}, "0 numbers are not queries of the width 2"},
		{"another width", good, good[:3], Options{Metric: L2, K: 1}, "3 numbers are not queries of the width 2"},
		{"k of 0", good, good, Options{Metric: L2}, "k must be at least 1 (got 0)"},
		{"a large k", good, good, Options{Metric: L2, K: 4}, "k = 4 neighbours among 3 rows: ask for at most 3"},
		{"a large k with skips", good, good, Options{Metric: L2, K: 3, Skip: []int32{-1, 0, 1}}, "ask for at most 2"},
		{"few skips", good, good, Options{Metric: L2, K: 1, Skip: []int32{0}}, "1 rows to skip for 3 queries"},
		{"a far skip", good, good, Options{Metric: L2, K: 1, Skip: []int32{0, 3, 0}}, "query 1 skips row 3 of a pool of 3"},
		{"NaN in the pool", []float32{1, 2, 3, nan}, good, Options{Metric: Inner, K: 1}, "row 1 of the pool is not finite (got NaN in column 1)"},
		{"infinity in a query", good, []float32{1, 2, inf, 1}, Options{Metric: L2, K: 1}, "row 1 of the queries is not finite (got +Inf in column 0)"},
		{"a zero row", []float32{1, 2, 0, 0}, good, Options{Metric: Cosine, K: 1}, "row 1 of the pool is zero"},
		{"a zero query", good, []float32{0, 0}, Options{Metric: Cosine, K: 1}, "row 0 of the queries is zero"},
		{"a long row", []float32{1, 2, 1e25, 0}, good, Options{Metric: Inner, K: 1}, "row 1 of the pool has length 1e+25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Exact(context.Background(), e, pool(t, c.x, 2), c.q, c.o)
			if err == nil || !strings.HasPrefix(err.Error(), "search: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	check.Fails(Memory(good, 4))(t, "6 numbers are not rows of width 4")
	if _, err := Memory(good, 0); err == nil {
		t.Error("rows of no width")
	}
	zero, err := Exact(context.Background(), e, pool(t, []float32{0, 0, 3, 4}, 2), []float32{0, 0},
		Options{Metric: L2, K: 2})
	if err != nil || !slices.Equal(zero.Scores, []float32{0, -5}) {
		t.Errorf("zero rows in a Euclidean space: %v %v", zero, err)
	}
}

// TestFarRow: a row far from all others does not blur their distances, wherever it stands.
func TestFarRow(t *testing.T) {
	const n, d, k, q = 2000, 16, 10, 50
	e := engine(t, 1)
	for _, at := range []int{0, 1, n - 1} {
		r := rand.New(rand.NewPCG(1, 5))
		x, queries := normal(r, n, d), normal(r, q, d)
		x[at*d+3] = 1e6
		p := pool(t, x, d)
		got := check.Get(Exact(context.Background(), e, p, queries, Options{Metric: L2, K: k}))(t)
		for i := range q {
			want, _ := naive(L2, x, d, queries[i*d:(i+1)*d], k, -1)
			if rows, _ := got.Of(i); !slices.Equal(rows, want) {
				t.Errorf("row %d is far, query %d: rows %v, want %v", at, i, rows, want)
			}
		}
		index := check.Get(Build(context.Background(), e, p, BuildOptions{Metric: L2}))(t)
		if !(index.Recall() >= DefaultRecall) {
			t.Errorf("row %d is far: the index has a recall of %.3f", at, index.Recall())
		}
	}
}
