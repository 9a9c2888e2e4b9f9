package gallery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/search"
)

// live is what was put and deleted since the files of a gallery were written, up to one change. It stays as it is: a
// search that has one is not touched by later changes. The rows that were put follow those of the files.
type live struct {
	changes int                  // so far
	base    int                  // rows of the files
	rows    int                  // of the files and those that were put
	x       map[string][]float32 // (rows-base, C) by tensor
	lines   []json.RawMessage    // (rows-base)
	dead    []uint64             // a bit for each row
	gone    int                  // rows that are dead
	goneOld int                  // of them, those of the files
}

// liveOf returns the changes of a side, nil where there are none.
func (g *Gallery) liveOf(side string) *live {
	if side != g.changed {
		return nil
	}
	return g.now.Load()
}

// Version is another one after every change of the rows.
func (g *Gallery) Version() string {
	if l := g.now.Load(); l != nil {
		return fmt.Sprintf("%s-%d", g.ID, l.changes)
	}
	return g.ID
}

// Has says whether a side has row i, and it was not deleted.
func (g *Gallery) Has(side string, i int) bool {
	return i >= 0 && i < g.Rows(side) && !g.liveOf(side).isDead(i)
}

// Alive returns how many rows of a side were not deleted.
func (g *Gallery) Alive(side string) int {
	if l := g.liveOf(side); l != nil {
		return l.alive()
	}
	return g.baseRows(side)
}

func (l *live) alive() int { return l.rows - l.gone }

func (l *live) isDead(row int) bool {
	return l != nil && row/64 < len(l.dead) && l.dead[row/64]>>(row%64)&1 == 1
}

// only leaves out the rows that are dead.
func (l *live) only(rows []int32) []int32 {
	if l.gone == 0 {
		return rows
	}
	out := make([]int32, 0, len(rows))
	for _, row := range rows {
		if !l.isDead(int(row)) {
			out = append(out, row)
		}
	}
	return out
}

// after returns the changes after one more: rows that die, and rows that are put, with their tensors.
func (l *live) after(c *change) *live {
	next := *l
	next.changes++
	next.rows += len(c.Lines)
	next.lines = append(l.lines, c.Lines...) // beyond what l has
	next.x = maps.Clone(l.x)
	for name, x := range c.tensors {
		next.x[name] = append(l.x[name], x...)
	}
	next.dead = slices.Concat(l.dead, make([]uint64, (next.rows+63)/64-len(l.dead)))
	for _, row := range c.Dead {
		next.dead[row/64] |= 1 << (row % 64)
		if int(row) < l.base {
			next.goneOld++
		}
	}
	next.gone += len(c.Dead)
	return &next
}

// apply makes a change that the log has.
func (g *Gallery) apply(c *change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.now.Load()
	if l == nil {
		n := g.baseRows(g.changed)
		l = &live{base: n, rows: n, x: map[string][]float32{}}
	}
	for i, id := range c.ids {
		if g.put == nil {
			g.put = map[string]int32{}
		}
		g.put[id] = int32(l.rows + i)
	}
	g.now.Store(l.after(c))
}

// joined is the rows of files and those that were put after them.
type joined struct {
	*table
	more []float32 // (n, C)
}

// pool returns all rows of a tensor of which base has those of the files.
func (l *live) pool(base *table, tensor string) rowsPool {
	if l.rows == l.base {
		return base
	}
	return joined{base, l.x[tensor][:(l.rows-l.base)*base.width]}
}

func (j joined) Rows() int { return j.table.Rows() + len(j.more)/j.width }

func (j joined) Row(i int, dst []float32) error {
	if n := j.table.Rows(); i >= n && i < j.Rows() {
		copy(dst, j.more[(i-n)*j.width:(i-n+1)*j.width])
		return nil
	}
	return j.table.Row(i, dst)
}

func (j joined) ReadRows(first int, dst []float32) error {
	if n := j.table.Rows(); first < n {
		count := min(len(dst), (n-first)*j.width)
		if err := j.table.ReadRows(first, dst[:count]); err != nil {
			return err
		}
		first, dst = n, dst[count:]
	}
	if len(dst) > 0 {
		copy(dst, j.more[(first-j.table.Rows())*j.width:])
	}
	return nil
}

// searchLive is Search beside changes. An index has the rows of the files alone; those that were put since are all
// compared.
func (v *View) searchLive(ctx context.Context, e *compute.Engine, queries []float32, l *live, exact bool,
	o search.Options) (*search.Hits, error) {
	if exact || v.index == nil {
		return l.living(0, l.rows, queries, v.pool.width, o, func(o search.Options) (*search.Hits, error) {
			return search.Exact(ctx, e, l.pool(v.pool, v.tensor), queries, o)
		})
	}
	old, err := l.living(0, l.base, queries, v.pool.width, o, func(o search.Options) (*search.Hits, error) {
		o.Recall = v.recall
		return v.index.Search(ctx, e, queries, o)
	})
	if err != nil || l.rows == l.base {
		return old, err
	}
	put, err := search.Memory(l.x[v.tensor][:(l.rows-l.base)*v.pool.width], v.pool.width)
	if err != nil {
		return nil, err
	}
	fresh, err := l.living(l.base, l.rows, queries, v.pool.width, o, func(o search.Options) (*search.Hits, error) {
		return search.Exact(ctx, e, put, queries, o)
	})
	if err != nil {
		return nil, err
	}
	return together(old, fresh, len(queries)/v.pool.width, o.K), nil
}

// deadSlack is how many hits more are asked for than are wanted, where some rows are dead.
const deadSlack = 32

// living returns the best hits among the rows from to to-1 that are not dead, fewer where these are fewer. find
// searches them, numbered from 0. More and more hits are asked for until enough are alive.
func (l *live) living(from, to int, queries []float32, width int, o search.Options,
	find func(o search.Options) (*search.Hits, error)) (*search.Hits, error) {
	n, skip, dead := len(queries)/width, slices.Clone(o.Skip), 0
	if from == 0 {
		dead += l.goneOld
	}
	if to > l.base {
		dead += l.gone - l.goneOld
	}
	most := to - from
	for i, row := range skip {
		if skip[i] = row - int32(from); int(row) < from || int(row) >= to {
			skip[i] = -1
		} else {
			most = to - from - 1
		}
	}
	o.Skip = skip
	want := min(o.K, to-from-dead)
	for ask := min(want+min(dead, want+deadSlack), most); want > 0 && ask > 0; ask = min(2*ask, most) {
		o.K = ask
		hits, err := find(o)
		if err != nil {
			return nil, err
		}
		out := &search.Hits{K: want}
		lists := make([][]int, n) // places of the hits of each query that are alive
		for i := range n {
			for k, row := range hits.Rows[i*ask : (i+1)*ask] {
				if !l.isDead(from + int(row)) {
					lists[i] = append(lists[i], i*ask+k)
				}
			}
			out.K = min(out.K, len(lists[i]))
		}
		if out.K < want && ask < most {
			continue
		}
		for _, list := range lists {
			for _, at := range list[:out.K] {
				out.Rows = append(out.Rows, int32(from)+hits.Rows[at])
				out.Scores = append(out.Scores, hits.Scores[at])
			}
		}
		return out, nil
	}
	return &search.Hits{}, nil
}

// together merges the hits of n queries among two sets of rows, the first of which has the lower numbers: the best k.
func together(a, b *search.Hits, n, k int) *search.Hits {
	out := &search.Hits{K: min(k, a.K+b.K)}
	for i := range n {
		rows, scores := a.Of(i)
		more, of := b.Of(i)
		for range out.K {
			if len(more) == 0 || len(rows) > 0 && scores[0] >= of[0] {
				out.Rows, out.Scores = append(out.Rows, rows[0]), append(out.Scores, scores[0])
				rows, scores = rows[1:], scores[1:]
				continue
			}
			out.Rows, out.Scores = append(out.Rows, more[0]), append(out.Scores, of[0])
			more, of = more[1:], of[1:]
		}
	}
	return out
}
