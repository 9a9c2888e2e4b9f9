package report

import "math"

// series is a curve as it is read. It holds at most MaxPoints shares of the rows, which follow one another and have the
// same number of rows each; when there is one more, every two become one.
type series struct {
	shares []share
	rows   int    // of a share, but for the last one
	newest *Point // not in a share yet: another row of its step replaces it
}

// share is what is kept of rows that follow one another.
type share struct {
	first, low, high, last Point // low and high are the smallest and the largest value
	mean                   Point // of steps and of values
	n                      float64
}

// add takes a row, whose step is not below that of the row before.
func (s *series) add(p Point) {
	if s.newest != nil && s.newest.Step == p.Step {
		s.newest.Value = p.Value
		return
	}
	s.settle()
	s.newest = &p
}

// settle puts the newest row into a share.
func (s *series) settle() {
	if s.newest == nil {
		return
	}
	p := *s.newest
	one := share{p, p, p, p, p, 1}
	s.newest, s.rows = nil, max(s.rows, 1)
	if n := len(s.shares); n > 0 && s.shares[n-1].n < float64(s.rows) {
		s.shares[n-1] = s.shares[n-1].with(one)
		return
	}
	if len(s.shares) == MaxPoints {
		s.rows *= 2
		for i := range MaxPoints / 2 {
			s.shares[i] = s.shares[2*i].with(s.shares[2*i+1])
		}
		s.shares = s.shares[:MaxPoints/2]
	}
	s.shares = append(s.shares, one)
}

// with returns the share of the rows of a and of those of b, which follow.
func (a share) with(b share) share {
	n := a.n + b.n
	out := share{a.first, a.low, a.high, b.last,
		Point{a.mean.Step*(a.n/n) + b.mean.Step*(b.n/n), a.mean.Value*(a.n/n) + b.mean.Value*(b.n/n)}, n}
	if b.low.Value < a.low.Value {
		out.low = b.low
	}
	if b.high.Value > a.high.Value {
		out.high = b.high
	}
	return out
}

// cut forgets the rows from a step on. Of a share that has rows on both sides of it there is left what is known of
// those before, with the mean of all for theirs.
func (s *series) cut(step float64) {
	if s.newest != nil && s.newest.Step >= step {
		s.newest = nil
	}
	for len(s.shares) > 0 {
		n := len(s.shares) - 1
		a := s.shares[n]
		if a.last.Step < step {
			return
		}
		s.shares = s.shares[:n]
		if a.first.Step >= step {
			continue
		}
		left := share{a.first, a.first, a.first, a.first, Point{(a.first.Step + step) / 2, a.mean.Value}, 1}
		left.n = max(1, math.Floor(a.n*(step-a.first.Step)/(a.last.Step-a.first.Step)))
		for _, p := range a.extremes() {
			if p.Step >= step {
				continue
			}
			left.last = p
			if p.Value < left.low.Value {
				left.low = p
			}
			if p.Value > left.high.Value {
				left.high = p
			}
		}
		s.shares = append(s.shares, left)
		return
	}
}

// extremes are the smallest and the largest value in the order of their steps.
func (a share) extremes() [2]Point {
	if a.low.Step > a.high.Step {
		return [2]Point{a.high, a.low}
	}
	return [2]Point{a.low, a.high}
}

// points are the first row, the last one, and of each share the smallest and the largest; of shares of one row all.
func (s *series) points() (p []Point) {
	add := func(x Point) {
		if n := len(p); n == 0 || x.Step > p[n-1].Step {
			p = append(p, x)
		}
	}
	for i, a := range s.shares {
		if i == 0 {
			add(a.first)
		}
		for _, x := range a.extremes() {
			add(x)
		}
		if i == len(s.shares)-1 {
			add(a.last)
		}
	}
	return p
}

// local returns the local mean of all rows, see Smooth, at one point a share.
func (s *series) local(width float64) []Point {
	p, n := make([]Point, len(s.shares)), make([]float64, len(s.shares))
	for i, a := range s.shares {
		p[i], n[i] = a.mean, a.n
	}
	return smooth(p, n, width)
}
