package align

import (
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/topk"
)

// item is a value of an anchor.
type item struct {
	index int32
	value float32
}

// Before puts larger values first, of equal ones the first.
func (a item) Before(b item) bool {
	return a.value > b.value || a.value == b.value && a.index < b.index
}

// largest keeps the largest values above 0 that it is offered.
type largest struct{ topk.List[item] }

// newLargest returns n empty lists of k values.
func newLargest(n, k int) []largest {
	out := make([]largest, n)
	for i, l := range topk.NewLists[item](n, k) {
		out[i].List = l
	}
	return out
}

// offer adds a value if it is among the largest.
func (l *largest) offer(index int32, value float32) {
	if value > 0 && !(l.Full() && value <= l.Worst().value) { // indices rise: of equal ones the first stays
		l.Add(item{index, value})
	}
}

// code raises the values to the power p and scales them to unit length.
func (l *largest) code(p float64) Code {
	items := l.Items()
	slices.SortFunc(items, func(a, b item) int { return int(a.index - b.index) })
	var top, sum float64
	for _, v := range items {
		top = max(top, float64(v.value))
	}
	powers := make([]float64, len(items)) // of shares of the largest, so that none underflows for all
	for i, v := range items {
		powers[i] = math.Pow(float64(v.value)/top, p)
		sum += powers[i] * powers[i]
	}
	c := Code{Anchors: make([]int32, len(items)), Values: make([]float32, len(items))}
	for i, v := range items {
		c.Anchors[i], c.Values[i] = v.index, float32(powers[i]/math.Sqrt(sum))
	}
	return c
}
