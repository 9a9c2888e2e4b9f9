package model

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/geoalign/geoalign/data/batch"
)

// A computation is compiled for a number of rows and of places of each, so both take few values: rows are powers of
// two, places multiples of placeStep.
//
// passTokens bounds the tokens of a pass, and with them memory whatever the batch. Fewer share the packing of
// weights among fewer rows. Below leastTokens texts that need fewer places are taken along instead of passes of their own.
const (
	passTokens  = 3200
	leastTokens = 512
	placeStep   = 4
)

// chunk is some rows of a batch that are computed together.
type chunk struct {
	first, rows int // in the order of the cutter
	places      int // of each row
}

// cutter cuts batches into passes.
type cutter struct {
	order []int // rows of the batch, those of one pass after those of another
	list  []chunk
}

// passes cuts the rows of a batch, of at most most places each. With short the longest texts come first, and a pass has
// the places of its longest one; else all have most places, and rows are in their order.
func (c *cutter) passes(b *batch.Batch, most int, short bool) []chunk {
	n := b.Rows()
	c.order, c.list = c.order[:0], c.list[:0]
	for i := range n {
		c.order = append(c.order, i)
	}
	places := func(int) int { return most }
	if short {
		lengths := b.Ints(batch.Lengths)
		slices.SortStableFunc(c.order, func(i, j int) int { return cmp.Compare(lengths[j], lengths[i]) })
		places = func(at int) int {
			l := max(1, int(lengths[c.order[at]]))
			return min(most, (l+placeStep-1)/placeStep*placeStep)
		}
	}
	for at := 0; at < n; {
		l, same := places(at), 1
		for at+same < n && places(at+same) == l {
			same++
		}
		rows := min(n-at, max(1, passTokens/l), max(same, leastTokens/l))
		p := chunk{at, 1 << (bits.Len(uint(rows)) - 1), l}
		c.list = append(c.list, p)
		at += p.rows
	}
	return c.list
}
