package model

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/geoalign/geoalign/batch"
)

// A computation is compiled for a number of rows and of places of each, in a millisecond or two. Both take few values,
// so that most are compiled once: rows are a power of two or half as many again, places even.
//
// chunkTokens bounds the tokens of a chunk, and with them memory whatever the batch: by packed weights a picture of 197
// tokens is encoded as fast as 16 together. Below leastTokens, texts that need fewer places are taken along instead of
// chunks of their own.
var (
	chunkTokens = 1600
	leastTokens = 256 // tests have less of both
)

const placeStep = 2

// chunk is some rows of a batch that are computed together.
type chunk struct {
	first, rows int // in the order of the cutter
	places      int // of each row
}

// cutter cuts batches into chunks.
type cutter struct {
	order []int // rows of the batch, those of one chunk after those of another
	list  []chunk
}

// chunks cuts the rows of a batch, of at most most places each. With short the longest texts come first, and a chunk
// has the places of its longest one; else all have most places, and rows are in their order.
func (c *cutter) chunks(b *batch.Batch, most int, short bool) []chunk {
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
			return evenPlaces(lengths[c.order[at]], most)
		}
	}
	for at := 0; at < n; {
		l, same := places(at), 1
		for at+same < n && places(at+same) == l {
			same++
		}
		rows := min(n-at, max(1, chunkTokens/l), max(same, leastTokens/l))
		c.list = append(c.list, chunk{at, fewRows(rows), l})
		at += fewRows(rows)
	}
	return c.list
}

// evenPlaces returns the places of texts of at most length tokens, of most.
func evenPlaces(length int32, most int) int {
	l := max(1, int(length))
	return min(most, (l+placeStep-1)/placeStep*placeStep)
}

// fewRows returns the largest of 1, 2, 3, 4, 6, 8, 12, 16 ... that is at most n.
func fewRows(n int) int {
	low := 1 << (bits.Len(uint(n)) - 1)
	if half := low + low/2; half <= n {
		return half
	}
	return low
}
