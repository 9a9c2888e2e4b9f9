package search

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// hit is a row and its score.
type hit struct {
	score float32
	row   int32
}

// before is the order of hits: higher scores first, among equal ones the lower row.
func (a hit) before(b hit) bool {
	return a.score > b.score || a.score == b.score && a.row < b.row
}

// top keeps the first cap(items) hits of those added, in any order, as a heap with the last of
// them in front.
type top struct{ items []hit }

// newTops returns n empty lists of k hits, in one piece of memory.
func newTops(n, k int) []top {
	all, out := make([]hit, n*k), make([]top, n)
	for i := range out {
		out[i].items = all[i*k : i*k : (i+1)*k]
	}
	return out
}

// least returns the score below which nothing enters.
func (t *top) least() float32 {
	if len(t.items) < cap(t.items) {
		return float32(math.Inf(-1))
	}
	return t.items[0].score
}

// add offers a hit.
func (t *top) add(x hit) {
	h := t.items
	if len(h) < cap(h) {
		h = append(h, x)
		for i := len(h) - 1; i > 0; {
			parent := (i - 1) / 2
			if !h[parent].before(h[i]) {
				break
			}
			h[parent], h[i] = h[i], h[parent]
			i = parent
		}
		t.items = h
		return
	}
	if !x.before(h[0]) {
		return
	}
	h[0] = x
	for i := 0; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[last].before(h[child]) {
				last = child
			}
		}
		if last == i {
			return
		}
		h[i], h[last] = h[last], h[i]
		i = last
	}
}

// run is how many scores addRows looks at as one.
const run = 128

// addRows offers the rows from first on with their scores, except skip. Most runs of them hold
// nothing that enters, which their largest score tells.
func (t *top) addRows(first int, scores []float32, skip int32) {
	for from := 0; from < len(scores); from += run {
		part := scores[from:min(from+run, len(scores))]
		least := t.least()
		if vector.Max(part) < least {
			continue
		}
		for i, s := range part {
			if row := int32(first + from + i); s >= least && row != skip {
				t.add(hit{s, row})
				least = t.least()
			}
		}
	}
}

// sorted orders the hits, the nearest first. Nothing may be added afterwards.
func (t *top) sorted() []hit {
	slices.SortFunc(t.items, func(a, b hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return t.items
}
