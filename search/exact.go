package search

import (
	"context"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Sizes of the parts of an exact search.
const (
	blockValues  = 1 << 18 // numbers of a block of the pool: 1 MB, a core's second-level cache
	chunkQueries = 512     // queries that a pass over the pool serves
	fewQueries   = 4       // below it products are read from memory one query at a time
	slack        = 16      // hits kept beyond K, see rescore
)

// Exact returns the K rows of pool that are nearest to each of queries (Q, D), by comparing all.
// It takes 2*Q*N*D operations in matrix products and reads the pool once for every 512 queries.
// The result does not depend on the number of threads. Rows whose scores differ by less than
// the rounding of a product in float32 may be taken for each other only if more than 16 of them
// lie about place K.
//
// It fails for an empty pool, a row or query that is not finite, a zero one with the cosine,
// widths that differ, a K beyond the rows, and when ctx ends.
func Exact(ctx context.Context, e *compute.Engine, pool Pool, queries []float32, o Options) (*Hits, error) {
	p, err := newPoints(pool, o.Metric)
	if err != nil {
		return nil, err
	}
	at, lengths, err := p.queries(queries)
	if err != nil {
		return nil, err
	}
	q, d := len(lengths), pool.Width()
	if err := o.check(q, pool.Rows()); err != nil {
		return nil, err
	}
	hits := newHits(q, o.K)
	s := newExact(e, p, min(q, chunkQueries), min(o.K+slack, pool.Rows()))
	chunks := (q + chunkQueries - 1) / chunkQueries
	for c := range chunks {
		from := c * chunkQueries
		to := min(from+chunkQueries, q)
		s.queries, s.q = at[from*d:to*d], to-from
		s.skip = func(i int) int32 { return o.skip(from + i) }
		progress := func(done, _ int) { o.progress(c*s.blocks+done, chunks*s.blocks) }
		if err := s.pass(ctx, progress); err != nil {
			return nil, err
		}
		if err := s.finish(ctx, queries[from*d:to*d], lengths[from:to], hits, from); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// exact is passes over a pool for up to a number of queries. Each thread multiplies blocks of
// its own and keeps lists of its own. All blocks have one size, so that the product of a row does
// not depend on where it stands.
type exact struct {
	e       *compute.Engine
	p       points
	rows    int // of a block
	blocks  int
	keep    int
	queries []float32 // (q, D) points
	q       int
	skip    func(i int) int32
	workers []exactWorker
}

// exactWorker is the memory of a thread.
type exactWorker struct {
	block  []float32 // (rows, D)
	half   []float32 // (rows) of l2
	scores []float32 // (q, rows)
	tops   []top     // (q)
	row    []float32 // (D)
}

func newExact(e *compute.Engine, p points, q, keep int) *exact {
	n, d := p.pool.Rows(), p.pool.Width()
	s := &exact{e: e, p: p, keep: keep, rows: min(max(blockValues/d, 64), 4096, n)}
	s.blocks = (n + s.rows - 1) / s.rows
	s.workers = make([]exactWorker, e.Threads())
	for i := range s.workers {
		w := &s.workers[i]
		w.block, w.scores, w.row = make([]float32, s.rows*d), make([]float32, q*s.rows), make([]float32, d)
		if p.metric == L2 {
			w.half = make([]float32, s.rows)
		}
	}
	return s
}

// pass compares all rows with the queries.
func (s *exact) pass(ctx context.Context, progress func(done, of int)) error {
	for i := range s.workers {
		s.workers[i].tops = newTops(s.q, s.keep)
	}
	return each(ctx, s.e, s.blocks, progress, func(worker, b int) error {
		w, first := &s.workers[worker], b*s.rows
		n := min(s.rows, s.p.pool.Rows()-first)
		if err := s.p.read(first, n, w.block, w.half); err != nil {
			return err
		}
		s.products(w)
		for i := range s.q {
			scores := w.scores[i*s.rows:][:n]
			if w.half != nil {
				vector.Sub(scores, scores, w.half)
			}
			w.tops[i].addRows(first, scores, s.skip(i))
		}
		return nil
	})
}

// products multiplies the queries with the block.
func (s *exact) products(w *exactWorker) {
	d := s.p.pool.Width()
	if s.q < fewQueries {
		for i := range s.q {
			vector.DotRows(w.scores[i*s.rows:(i+1)*s.rows], 1, w.block, d, s.rows, s.queries[i*d:(i+1)*d], 1)
		}
		return
	}
	s.e.GemmSerial(false, true, s.q, s.rows, d, 1, s.queries, d, w.block, d, 0, w.scores, s.rows)
}

// finish sets the hits of the queries from first on, whose rows are raw.
func (s *exact) finish(ctx context.Context, raw []float32, lengths []float64, hits *Hits, first int) error {
	d := s.p.pool.Width()
	return each(ctx, s.e, s.q, nil, func(worker, i int) error {
		best := &s.workers[0].tops[i]
		for _, other := range s.workers[1:] {
			for _, h := range other.tops[i].Items() {
				best.Add(h)
			}
		}
		if err := s.p.rescore(raw[i*d:(i+1)*d], lengths[i], best, s.workers[worker].row); err != nil {
			return err
		}
		return hits.set(first+i, best.Sorted())
	})
}
