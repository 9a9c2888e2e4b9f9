// Package topk keeps the best few of many values.
package topk

import "slices"

// Ordered values have a total order, so that what a list keeps does not depend on the order in
// which values arrive.
type Ordered[T any] interface {
	Before(T) bool // whether this value is better
}

// List keeps the best K of the values added to it, as a heap with the worst of them in front.
type List[T Ordered[T]] struct{ items []T }

// New returns an empty list of k >= 1 values.
func New[T Ordered[T]](k int) List[T] { return List[T]{make([]T, 0, k)} }

// NewLists returns n empty lists of k >= 1 values, in one piece of memory.
func NewLists[T Ordered[T]](n, k int) []List[T] {
	all, out := make([]T, n*k), make([]List[T], n)
	for i := range out {
		out[i].items = all[i*k : i*k : (i+1)*k]
	}
	return out
}

// Full says whether a value enters only instead of another: of [List.Worst].
func (l *List[T]) Full() bool { return len(l.items) == cap(l.items) }

// Worst returns the value that leaves next. The list has at least one.
func (l *List[T]) Worst() T { return l.items[0] }

// Items returns the values in no order. They may be changed in place when nothing is added any more.
func (l *List[T]) Items() []T { return l.items }

// Add offers a value.
func (l *List[T]) Add(x T) {
	h := l.items
	if len(h) < cap(h) {
		h = append(h, x)
		for i := len(h) - 1; i > 0; {
			parent := (i - 1) / 2
			if !h[parent].Before(h[i]) {
				break
			}
			h[parent], h[i] = h[i], h[parent]
			i = parent
		}
		l.items = h
		return
	}
	if !x.Before(h[0]) {
		return
	}
	h[0] = x
	for i := 0; ; {
		worst := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[worst].Before(h[child]) {
				worst = child
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

// Sorted returns the values, the best first. Nothing may be added afterwards.
func (l *List[T]) Sorted() []T {
	slices.SortFunc(l.items, func(a, b T) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		}
		return 0
	})
	return l.items
}
