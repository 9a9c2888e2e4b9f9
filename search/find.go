package search

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Sizes of the parts of a search of an index.
const (
	batchQueries = 1 << 14 // queries that are ordered by their cells
	groupQueries = 256     // of them that a thread takes through the cells together
	leastSlack   = 32      // hits kept beyond K, or K where that is more, see rescore
)

// Search returns the K rows that are nearest to each of queries (Q, D), as far as they are in
// the cells that are looked at; more cells are where these hold fewer than K, or fewer than recall
// was measured with. Scores are those of Exact. Engine e splits the queries over its threads;
// without one they are searched on the calling goroutine, and any number of these may search at
// once. The result depends neither on that nor on what else is searched for.
//
// It fails as Exact does, and where o.Metric is another than the index's.
func (x *Index) Search(ctx context.Context, e *compute.Engine, queries []float32, o Options) (*Hits, error) {
	if err := x.checkMetric(o.Metric); err != nil {
		return nil, err
	}
	probes, err := x.probes(o.Recall)
	if err != nil {
		return nil, err
	}
	return x.find(ctx, e, queries, o, probes)
}

// find is Search with a number of cells to look at.
func (x *Index) find(ctx context.Context, e *compute.Engine, queries []float32, o Options, probes int) (*Hits, error) {
	at, lengths, err := x.queries(queries)
	if err != nil {
		return nil, err
	}
	if err := o.check(len(lengths), x.header.Rows); err != nil {
		return nil, err
	}
	hits := newHits(len(lengths), o.K)
	for from := 0; from < len(lengths); from += batchQueries {
		to, d := min(from+batchQueries, len(lengths)), x.header.Width
		b := &batch{x: x, o: o, probes: probes, first: from, raw: queries[from*d : to*d], at: at[from*d : to*d],
			lengths: lengths[from:to]}
		if err := b.run(ctx, e, hits); err != nil {
			return nil, err
		}
		o.progress(to, len(lengths))
	}
	return hits, nil
}

// batch is q queries that are searched together.
type batch struct {
	x       *Index
	o       Options
	probes  int
	first   int       // of the queries
	raw, at []float32 // (q, D) queries and their points
	lengths []float64 // (q)

	words  []int16   // (q, W) codes
	scales []float32 // (q) of the codes
	cells  [][]int32 // (q) that are looked at, the nearest first

	turned     []int8    // (q, 8 bitWidth) codes of the rotated points, of an index of bits
	turnScales []float32 // (q) of them
	turnSums   []int32   // (q) of them
}

// finder is the memory of a goroutine.
type finder struct {
	dots  []int32
	row   []float32
	pairs []pair
}

// pair is a cell for a query of a group.
type pair struct {
	cell  int32
	query int32 // of the batch
	place int32 // in the group
}

func (x *Index) newFinder() *finder {
	f := &finder{row: make([]float32, x.header.Width)}
	most := x.header.Cells
	for c := range x.header.Cells {
		lo, hi := x.cell(int32(c))
		most = max(most, hi-lo)
	}
	f.dots = make([]int32, most)
	return f
}

func (b *batch) run(ctx context.Context, e *compute.Engine, hits *Hits) error {
	q := len(b.lengths)
	b.words, b.scales, b.cells = make([]int16, q*b.x.width), make([]float32, q), make([][]int32, q)
	if b.x.header.bits() {
		b.turned = make([]int8, q*8*bitWidth(b.x.header.Width))
		b.turnScales, b.turnSums = make([]float32, q), make([]int32, q)
	}
	order := make([]int32, q)
	for i := range order {
		order[i] = int32(i)
	}
	groups := slices.Collect(slices.Chunk(order, groupQueries))
	err := each(ctx, e, len(groups), nil, func(_, g int) error {
		f := b.x.finder.Get().(*finder)
		defer b.x.finder.Put(f)
		for _, i := range groups[g] {
			b.choose(f, int(i))
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Queries of one cell lie together, so that its rows are in the cache for all of them.
	slices.SortFunc(order, func(i, j int32) int {
		if c := slices.Compare(b.cells[i], b.cells[j]); c != 0 {
			return c
		}
		return int(i - j)
	})
	return each(ctx, e, len(groups), nil, func(_, g int) error {
		f := b.x.finder.Get().(*finder)
		defer b.x.finder.Put(f)
		return b.group(f, groups[g], hits)
	})
}

// choose finds the cells of query i.
func (b *batch) choose(f *finder, i int) {
	x, d, w := b.x, b.x.header.Width, b.x.width
	words := b.words[i*w : (i+1)*w]
	b.scales[i] = codeQuery(words, b.at[i*d:(i+1)*d])
	if b.turned != nil {
		n := 8 * bitWidth(d)
		copy(f.row, b.at[i*d:(i+1)*d])
		x.turn.apply(f.row)
		b.turnScales[i], b.turnSums[i] = codeBitQuery(b.turned[i*n:(i+1)*n], f.row)
	}
	dots := f.dots[:x.header.Cells]
	vector.DotCodes(dots, x.coarse.codes, words)
	fewest := max(b.o.K, x.header.K) // in fewer rows the recall that was measured does not hold
	for probes := b.probes; ; probes = min(2*probes, x.header.Cells) {
		t := newTops(1, probes)[0]
		least := t.least()
		for c, dot := range dots {
			if s := x.coarse.scales[c]*b.scales[i]*float32(dot) - x.coarse.half[c]; s >= least {
				t.Add(hit{s, int32(c)})
				least = t.least()
			}
		}
		b.cells[i] = make([]int32, 0, probes)
		rows := 0
		for _, h := range t.Sorted() {
			lo, hi := x.cell(h.row)
			b.cells[i], rows = append(b.cells[i], h.row), rows+hi-lo
		}
		if rows > fewest || probes == x.header.Cells { // one row may be skipped
			return
		}
	}
}

// group searches for queries of the batch, cell by cell.
func (b *batch) group(f *finder, queries []int32, hits *Hits) error {
	x, d := b.x, b.x.header.Width
	f.pairs = f.pairs[:0]
	for place, i := range queries {
		for _, c := range b.cells[i] {
			f.pairs = append(f.pairs, pair{c, i, int32(place)})
		}
	}
	if len(queries) > 1 {
		slices.SortFunc(f.pairs, func(a, b pair) int {
			if a.cell != b.cell {
				return int(a.cell - b.cell)
			}
			return int(a.place - b.place)
		})
	}
	tops := newTops(len(queries), x.header.keep(b.o.K))
	for _, p := range f.pairs {
		i := int(p.query)
		base := vector.Dot(b.at[i*d:(i+1)*d], x.centres[int(p.cell)*d:][:d])
		b.scan(f.dots, &tops[p.place], p.cell, i, base)
	}
	for place, i := range queries {
		t := &tops[place]
		if err := x.rescore(b.raw[int(i)*d:][:d], b.lengths[i], t, f.row); err != nil {
			return err
		}
		if err := hits.set(b.first+int(i), t.Sorted()); err != nil {
			return err
		}
	}
	return nil
}

// scan offers the rows of a cell to query i of the batch: base is the product of the query and the centre.
//
//	x . y              = base + (x - c) . y
//	x . y - |x|^2 / 2  of l2
func (b *batch) scan(dots []int32, t *top, cell int32, i int, base float32) {
	x := b.x
	lo, hi := x.cell(cell)
	dots = dots[:hi-lo]
	if len(dots) == 0 {
		return
	}
	scale := b.products(dots, lo, hi, i)
	rows, scales, skip := x.rows[lo:hi], x.scales[lo:hi], b.o.skip(b.first+i)
	least := t.least()
	for i, dot := range dots {
		s := base + scales[i]*scale*float32(dot)
		if x.half != nil {
			s -= x.half[lo+i]
		}
		if s >= least && rows[i] != skip {
			t.Add(hit{s, rows[i]})
			least = t.least()
		}
	}
}

// products sets dots to the products of the codes of the rows at [lo, hi) with those of query i, and returns the scale
// of the query.
func (b *batch) products(dots []int32, lo, hi, i int) float32 {
	x, w := b.x, b.x.width
	if b.turned == nil {
		vector.DotCodes(dots, x.codes[lo*w:hi*w], b.words[i*w:(i+1)*w])
		return b.scales[i]
	}
	w = bitWidth(x.header.Width)
	vector.DotBits(dots, x.bits[lo*w:hi*w], b.turned[i*8*w:(i+1)*8*w])
	for j, dot := range dots {
		dots[j] = 2*dot - b.turnSums[i]
	}
	return b.turnScales[i]
}
