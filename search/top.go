package search

import (
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/topk"
)

// hit is a row and its score.
type hit struct {
	score float32
	row   int32
}

// Before is the order of hits: higher scores first, among equal ones the lower row.
func (a hit) Before(b hit) bool {
	return a.score > b.score || a.score == b.score && a.row < b.row
}

// top keeps the first hits of those added.
type top struct{ topk.List[hit] }

// newTops returns n empty lists of k hits.
func newTops(n, k int) []top {
	out := make([]top, n)
	for i, l := range topk.NewLists[hit](n, k) {
		out[i].List = l
	}
	return out
}

// least returns the score below which nothing enters.
func (t *top) least() float32 {
	if !t.Full() {
		return float32(math.Inf(-1))
	}
	return t.Worst().score
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
				t.Add(hit{s, row})
				least = t.least()
			}
		}
	}
}
