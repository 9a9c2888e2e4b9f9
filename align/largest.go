package align

import (
	"container/heap"
	"math"
	"sort"
)

// largest keeps the largest values above 0 that it is offered, of equal ones the first. It is
// a heap with the least of them on top.
type largest []item

type item struct {
	index int32
	value float32
}

func (l largest) Len() int      { return len(l) }
func (l largest) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l largest) Less(i, j int) bool {
	if l[i].value != l[j].value {
		return l[i].value < l[j].value
	}
	return l[i].index > l[j].index
}

// Push implements heap.Interface.
func (l *largest) Push(x any) { *l = append(*l, x.(item)) }

// Pop implements heap.Interface.
func (l *largest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// offer adds a value if it is among the k largest. Indices rise from call to call.
func (l *largest) offer(k int, index int32, value float32) {
	switch {
	case !(value > 0):
	case len(*l) < k:
		heap.Push(l, item{index, value})
	case value > (*l)[0].value:
		(*l)[0] = item{index, value}
		heap.Fix(l, 0)
	}
}

// code raises the values to the power p and scales them to unit length.
func (l largest) code(p float64) Code {
	sort.Slice(l, func(i, j int) bool { return l[i].index < l[j].index })
	var top, sum float64
	for _, v := range l {
		top = max(top, float64(v.value))
	}
	powers := make([]float64, len(l)) // of shares of the largest, so that none underflows for all
	for i, v := range l {
		powers[i] = math.Pow(float64(v.value)/top, p)
		sum += powers[i] * powers[i]
	}
	c := Code{Anchors: make([]int32, len(l)), Values: make([]float32, len(l))}
	for i, v := range l {
		c.Anchors[i], c.Values[i] = v.index, float32(powers[i]/math.Sqrt(sum))
	}
	return c
}
