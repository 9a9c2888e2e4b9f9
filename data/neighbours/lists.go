package neighbours

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/search"
)

// Options say how the nearest rows are found and where they are kept.
type Options struct {
	Engine *compute.Engine // nil: one is started for the search
	Seed   uint64          // of an index
	Cache  string          // folder, made if it is not there; empty: they are kept in memory
	// Progress is told how much of a phase is done; nil: nobody is.
	Progress func(phase string, done, of int)
	// Note is told how they were found, and of rows that were left out; nil: nobody is.
	Note func(string)
}

// Lists are the nearest rows of the pool of a side, by cosine, for each row of it that is in a pair
// of training. They may be used by several goroutines.
type Lists struct {
	Config
	side    string // image or text
	pool    *features.Pool
	anchors []int32 // (A) rows of the pool, rising
	most    int     // M, or what the pool has
	near    []int32 // (A, M) rows of the pool, the nearest first; -1 for an anchor without a direction
	recall  float64
	close   func() error
}

var _ features.Neighbours = (*Lists)(nil)

// Images finds the nearest rows of the pool of images for each image of training. It fails for a K
// beyond the pool, where a file cannot be read, and when ctx ends. Close the result after use.
func Images(ctx context.Context, p *features.Pairs, c Config, o Options) (*Lists, error) {
	pool, err := p.ImagePool()
	if err != nil {
		return nil, err
	}
	return find(ctx, "image", p, pool, func(q features.Pair) int32 { return q.Image }, c, o)
}

// Texts is Images for texts.
func Texts(ctx context.Context, p *features.Pairs, c Config, o Options) (*Lists, error) {
	pool, err := p.TextPool()
	if err != nil {
		return nil, err
	}
	return find(ctx, "text", p, pool, func(q features.Pair) int32 { return q.Text }, c, o)
}

func find(ctx context.Context, side string, p *features.Pairs, pool *features.Pool, row func(features.Pair) int32,
	c Config, o Options) (*Lists, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	l := &Lists{Config: c, side: side, pool: pool, most: min(c.Near, pool.Rows()-1), close: func() error { return nil }}
	if c.drawn() > l.most {
		return nil, l.tooFew(pool.Rows() - 1)
	}
	train, err := p.Split("train")
	if err != nil {
		return nil, err
	}
	for _, q := range train {
		at, _ := pool.Place(row(q))
		l.anchors = append(l.anchors, at)
	}
	slices.Sort(l.anchors)
	l.anchors = slices.Compact(l.anchors)
	if o.Cache == "" {
		err = l.search(ctx, o)
	} else {
		err = l.cached(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// tooFew says that the pool lacks enough rows.
func (l *Lists) tooFew(others int) error {
	return fmt.Errorf("neighbours: a neighbourhood of %d needs %d rows beside the anchor, and the pool of %ss has %d "+
		"that can be compared: lower objective.geometric.neighbours, or name more features in data.pairs.%s_pool", l.K,
		l.drawn(), l.side, max(0, others), l.side)
}

// Pool returns the rows that neighbours are numbered by.
func (l *Lists) Pool() *features.Pool { return l.pool }

// Recall returns the share of the nearest rows that was found: 1 unless an index was used, of
// which it was measured.
func (l *Lists) Recall() float64 { return l.recall }

// Close gives the file of the lists back. Nothing may be drawn afterwards, but they may be closed again.
func (l *Lists) Close() error { return l.close() }

// Sizes of the search.
const (
	maxSquare   = 1e37    // squared length of a row that products in float32 can hold
	exactWork   = 1e13    // products of numbers up to which rows are compared one by one, some minutes
	findAnchors = 1 << 12 // that are searched for at a time
)

// search fills the lists.
func (l *Lists) search(ctx context.Context, o Options) error {
	if o.Engine == nil {
		e, err := compute.New(compute.Options{})
		if err != nil {
			return err
		}
		defer e.Close()
		o.Engine = e
	}
	rows, err := l.usable(ctx, o)
	if err != nil {
		return err
	}
	l.most = min(l.most, rows.Rows()-1)
	if l.drawn() > l.most {
		return l.tooFew(rows.Rows() - 1)
	}
	nearest, err := l.searcher(ctx, rows, o)
	if err != nil {
		return err
	}
	l.near = make([]int32, len(l.anchors)*l.most)
	d := l.pool.Width()
	block := min(findAnchors, len(l.anchors))
	queries, skip, places := make([]float32, block*d), make([]int32, block), make([]int, block)
	for from := 0; from < len(l.anchors); from += block {
		to, q := min(from+block, len(l.anchors)), 0
		for i := from; i < to; i++ {
			at, ok := rows.place(l.anchors[i])
			if !ok {
				l.near[i*l.most] = -1
				continue
			}
			if err := l.pool.Row(int(l.anchors[i]), queries[q*d:(q+1)*d]); err != nil {
				return err
			}
			skip[q], places[q] = at, i
			q++
		}
		if q > 0 {
			hits, err := nearest(queries[:q*d], skip[:q])
			if err != nil {
				return fmt.Errorf("neighbours of %ss: %w", l.side, err)
			}
			for j, i := range places[:q] {
				found, _ := hits.Of(j)
				for k, row := range found {
					l.near[i*l.most+k] = rows.original(row)
				}
			}
		}
		o.Progress("neighbours of "+l.side+"s", to, len(l.anchors))
	}
	return nil
}

// searcher chooses how rows are found and says so.
func (l *Lists) searcher(ctx context.Context, pool usableRows,
	o Options) (func(queries []float32, skip []int32) (*search.Hits, error), error) {
	how := search.Options{Metric: search.Cosine, K: l.most}
	what := fmt.Sprintf("the %d nearest of %d %ss for each of %d", l.most, pool.Rows(), l.side, len(l.anchors))
	l.recall = 1
	if !l.indexed() {
		o.Note(what + " were found by comparing all")
		return func(queries []float32, skip []int32) (*search.Hits, error) {
			how.Skip = skip
			return search.Exact(ctx, o.Engine, pool, queries, how)
		}, nil
	}
	x, err := search.Build(ctx, o.Engine, pool, search.BuildOptions{Metric: search.Cosine, K: l.most, Seed: o.Seed,
		Progress: func(stage string, done, of int) { o.Progress("index of "+l.side+"s: "+stage, done, of) }})
	if err != nil {
		return nil, fmt.Errorf("neighbours: index of %ss: %w", l.side, err)
	}
	l.recall = x.Recall()
	o.Note(fmt.Sprintf("%s were found by an index with recall %.3f", what, l.recall))
	return func(queries []float32, skip []int32) (*search.Hits, error) {
		how.Skip = skip
		return x.Search(ctx, o.Engine, queries, how)
	}, nil
}

// indexFrom is changed by tests, which have no pool that is worth an index.
var indexFrom float64 = exactWork

// indexed says whether the pool is searched by an index.
func (l *Lists) indexed() bool {
	return float64(len(l.anchors))*float64(l.pool.Rows())*float64(l.pool.Width()) > indexFrom
}

// usableRows is the rows of a pool that have a direction, as a pool.
type usableRows struct {
	*features.Pool
	rows []int32 // nil: all
}

// Rows returns how many they are.
func (u usableRows) Rows() int {
	if u.rows == nil {
		return u.Pool.Rows()
	}
	return len(u.rows)
}

// Row reads row i.
func (u usableRows) Row(i int, dst []float32) error {
	return u.Pool.Row(int(u.original(int32(i))), dst)
}

// ReadRows reads rows one by one where some of the pool lie between them.
func (u usableRows) ReadRows(first int, dst []float32) error {
	if u.rows == nil {
		return u.Pool.ReadRows(first, dst)
	}
	d := u.Width()
	for i := range len(dst) / d {
		if err := u.Row(first+i, dst[i*d:(i+1)*d]); err != nil {
			return err
		}
	}
	return nil
}

// original returns the row of the pool that row i is.
func (u usableRows) original(i int32) int32 {
	if u.rows == nil {
		return i
	}
	return u.rows[i]
}

// place returns the row that row i of the pool is, and whether it is one.
func (u usableRows) place(i int32) (int32, bool) {
	if u.rows == nil {
		return i, true
	}
	at, ok := slices.BinarySearch(u.rows, i)
	return int32(at), ok
}

// usable reads the pool and leaves out rows that are zero, not finite, or too long for products in
// float32, with a note.
func (l *Lists) usable(ctx context.Context, o Options) (usableRows, error) {
	u := usableRows{Pool: l.pool}
	d, total := l.pool.Width(), l.pool.Rows()
	block := min(total, max(1, (1<<20)/d))
	b := make([]float32, block*d)
	var bad []int32
	for first := 0; first < total; first += block {
		if err := ctx.Err(); err != nil {
			return u, err
		}
		count := min(block, total-first)
		if err := l.pool.ReadRows(first, b[:count*d]); err != nil {
			return u, err
		}
		for i := range count {
			if sq := vector.SumSq(b[i*d : (i+1)*d]); !(sq > 0 && sq <= maxSquare) {
				bad = append(bad, int32(first+i))
			}
		}
		o.Progress("reading "+l.side+"s", first+count, total)
	}
	if bad == nil {
		return u, nil
	}
	o.Note(fmt.Sprintf("%d of %d rows of the pool of %ss are zero or not finite and are nobody's neighbours (the "+
		"first: %s)", len(bad), total, l.side, l.pool.Name(int(bad[0]))))
	u.rows = make([]int32, 0, total-len(bad))
	for i := range int32(total) {
		if len(bad) > 0 && bad[0] == i {
			bad = bad[1:]
			continue
		}
		u.rows = append(u.rows, i)
	}
	return u, nil
}

// errGone says that the lists cannot be read any more.
var errGone = errors.New(
	"neighbours: the file of the neighbours can no longer be read: it was changed or its disk fails: start again")

// Rows returns K, the rows that Draw gives.
func (l *Lists) Rows() int { return l.K }

// Draw sets dst (K) to rows of the pool: the neighbourhood of row i of the file of the pairs, by
// the random numbers of sample counter of a seed. It fails for a row without a direction and for one that
// is in no pair of training.
func (l *Lists) Draw(seed, counter uint64, i int32, dst []int32) (err error) {
	defer files.RecoverFault(&err, errGone, debug.SetPanicOnFault(true))
	at, _ := l.pool.Place(i)
	place, ok := slices.BinarySearch(l.anchors, at)
	if !ok {
		return fmt.Errorf("neighbours: %s row %d is in no pair of training", l.side, i)
	}
	near := l.near[place*l.most : (place+1)*l.most]
	if near[0] < 0 {
		return fmt.Errorf("neighbours: %s is zero or not finite and has none: compute it again or remove the pair",
			l.pool.Name(int(at)))
	}
	if l.Anchor {
		dst[0], dst = at, dst[1:]
	}
	l.sample(seed, counter, l.side, near, dst)
	return nil
}
