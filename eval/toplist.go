package eval

import "sort"

// candidate is an entry of a query's list of best candidates.
type candidate struct {
	index int32
	score float32
	right bool // a positive of the query
}

// before is the total order of candidates: higher scores first; among equal
// scores wrong candidates before positives (the package's tie rule), then the
// lower index. It does not depend on the order in which candidates arrive.
func (a candidate) before(b candidate) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.right != b.right:
		return b.right
	}
	return a.index < b.index
}

// topList keeps the first cap(items) candidates under that order, as a heap
// with the last of them on top.
type topList struct{ items []candidate }

// newTopLists returns n empty lists for k candidates each, in one allocation.
func newTopLists(n, k int) []topList {
	all := make([]candidate, n*k)
	out := make([]topList, n)
	for i := range out {
		out[i].items = all[i*k : i*k : (i+1)*k]
	}
	return out
}

// add offers a candidate.
func (l *topList) add(c candidate) {
	h := l.items
	if len(h) < cap(h) {
		h = append(h, c)
		for i := len(h) - 1; i > 0; {
			parent := (i - 1) / 2
			if !h[parent].before(h[i]) {
				break
			}
			h[parent], h[i] = h[i], h[parent]
			i = parent
		}
		l.items = h
		return
	}
	if !c.before(h[0]) {
		return
	}
	h[0] = c
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

// sorted returns the indices of the candidates, the best first.
func (l *topList) sorted() []int {
	s := append([]candidate(nil), l.items...)
	sort.Slice(s, func(i, j int) bool { return s[i].before(s[j]) })
	out := make([]int, len(s))
	for i, c := range s {
		out[i] = int(c.index)
	}
	return out
}
