package search

import (
	"fmt"
)

// Options say what to search for.
type Options struct {
	// Metric of Exact; of an index it is the one that it was built for, which may be left out.
	Metric Metric
	// K is the number of neighbours of a query: 1 to the rows of the pool.
	K int
	// Skip has a row of the pool for each query that is not to be found, such as the query's
	// own, or a negative number. Nil: none.
	Skip []int32
	// Recall is the share of neighbours that an index is to find, of those of its choice when
	// it was built; 0: that of the build. Exact finds all.
	Recall float64
	// Progress is called now and then with the number of finished parts; nil: by nobody.
	Progress func(done, of int)
}

// Hits are the K nearest rows of Q queries, the nearest first, of equal ones the lower row.
type Hits struct {
	K      int
	Rows   []int32   // (Q, K)
	Scores []float32 // (Q, K), see Metric
}

// newHits makes room for the hits of q queries.
func newHits(q, k int) *Hits {
	return &Hits{K: k, Rows: make([]int32, q*k), Scores: make([]float32, q*k)}
}

// Of returns the rows and scores of query q.
func (h *Hits) Of(q int) (rows []int32, scores []float32) {
	return h.Rows[q*h.K : (q+1)*h.K], h.Scores[q*h.K : (q+1)*h.K]
}

// set fills in the hits of query q. It fails where they are too few, as products do that are not
// finite, of an index whose values somebody made up.
func (h *Hits) set(q int, hits []hit) error {
	if len(hits) < h.K {
		return fmt.Errorf("search: query %d has %d comparable rows, not %d: %w: build it again", q, len(hits), h.K,
			ErrFormat)
	}
	rows, scores := h.Of(q)
	for i, x := range hits[:h.K] {
		rows[i], scores[i] = x.row, x.score
	}
	return nil
}

// check refuses what cannot be searched for by q queries among n rows.
func (o Options) check(q, n int) error {
	most := n
	for i, s := range o.Skip {
		if s >= 0 {
			most = n - 1
		}
		if int(s) >= n {
			return fmt.Errorf("search: query %d skips row %d of a pool of %d rows", i, s, n)
		}
	}
	switch {
	case o.Skip != nil && len(o.Skip) != q:
		return fmt.Errorf("search: %d rows to skip for %d queries: give one for each, negative for none", len(o.Skip),
			q)
	case o.K < 1:
		return fmt.Errorf("search: k must be at least 1 (got %d)", o.K)
	case o.K > most && most < n:
		return fmt.Errorf("search: k = %d neighbours among %d rows, of which one is skipped: ask for at most %d", o.K,
			n, most)
	case o.K > most:
		return fmt.Errorf("search: k = %d neighbours among %d rows: ask for at most %d", o.K, n, most)
	}
	return nil
}

// skip returns the row that query q does not find, or -1.
func (o Options) skip(q int) int32 {
	if o.Skip == nil {
		return -1
	}
	return o.Skip[q]
}

// progress reports.
func (o Options) progress(done, of int) {
	if o.Progress != nil {
		o.Progress(done, of)
	}
}
