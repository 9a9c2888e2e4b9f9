package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// Times returns the products m n of values, the coarser matrix broadcast.
func (m Matrix) Times(n Matrix) Matrix {
	g := m.grid.finest(n.grid)
	if m.grid != g {
		m, n = n, m
	}
	if m.grid != g {
		m = m.spread(g, false)
	}
	return m.with(m.b.sides.times(m.b.spans, m.node, n.node, g, n.grid), g)
}

// Plus returns the sums a m + c n of values, the coarser matrix broadcast.
func (m Matrix) Plus(a float32, n Matrix, c float32) Matrix {
	g := m.grid.finest(n.grid)
	if m.grid != g {
		m, n, a, c = n, m, c, a
	}
	if m.grid != g {
		m = m.spread(g, false)
	}
	return m.with(m.b.sides.plus(m.b.spans, m.node, n.node, g, n.grid, a, c), g)
}

// Sum returns the sums over the tokens of each sequence of a side.
func (m Matrix) Sum(side SideOf) Matrix { return m.sum(side, false) }

// Mean returns the means over the tokens of each sequence of a side; that of none is 0.
func (m Matrix) Mean(side SideOf) Matrix { return m.sum(side, true) }

func (m Matrix) sum(side SideOf, mean bool) Matrix {
	to := m.over(side)
	return m.with(m.b.sides.sum(m.b.spans, m.node, m.grid, to, mean), to)
}

// Dot returns the sums of the products of m and n over the tokens of each sequence of a side.
func (m Matrix) Dot(n Matrix, side SideOf) Matrix {
	m.b.need(m.grid == n.grid, "sums of products are those of matrices with the same rows and columns")
	to := m.over(side)
	return m.with(m.b.sides.dot(m.b.spans, m.node, n.node, m.grid, to), to)
}

// over is the grid of sums over tokens of a side.
func (m Matrix) over(side SideOf) grid {
	m.b.need(m.grid[side] == Tokens, "there are no tokens of this side to reduce over")
	g := m.grid
	g[side] = Sequences
	return g
}

func (m Matrix) spread(g grid, mean bool) Matrix {
	return m.with(m.b.sides.spread(m.b.spans, m.node, m.grid, g, mean), g)
}

// times returns x (g) times y (h), which is coarser.
func (s sides) times(spans [2]*gorgonia.Node, x, y *gorgonia.Node, g, h grid) *gorgonia.Node {
	p := primitive{
		kind: "times", args: fmt.Sprint(g, h), shape: s.shape(g), operands: 2, adds: true,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep {
			return m.Elements("times", oncuda.Grid(g), []oncuda.Grid{oncuda.Grid(g), oncuda.Grid(h)})
		},
		sequence: func(w *work, _, i int) {
			for r, end := w.spans[0].along(g[0], i); r < end; r++ {
				to, row, by := w.row(w.Out.F32, g, r), w.row(w.In[0].F32, g, r), w.rowFor(w.In[1].F32, h, i, r)
				w.timesRow(to, row, by, g[1], h[1])
			}
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.times(spans, dy, in[1], g, h), s.dot(spans, dy, in[0], g, h)}
		},
	}
	if g == h {
		p.inPlace = []int{0, 1}
	} else {
		p.inPlace = []int{0}
	}
	return s.apply(p, spans, x, y)
}

// timesRow sets, or adds, the products of a row with a coarser one.
func (w *work) timesRow(to, row, by []float32, g, h Axis) {
	switch {
	case g == h && w.Accumulate:
		for c, v := range row {
			to[c] += v * by[c]
		}
	case g == h:
		vector.Mul(to, row, by)
	case h == One && w.Accumulate:
		vector.Axpy(to, by[0], row)
	case h == One:
		vector.Scale(to, by[0], row)
	default:
		for j, v := range by {
			at, n := w.spans[1].of(j)
			if w.Accumulate {
				vector.Axpy(to[at:][:n], v, row[at:][:n]) // with one rounding
			} else {
				vector.Scale(to[at:][:n], v, row[at:][:n])
			}
		}
	}
}

// dot returns the sums of x y, both of grid g, over what is one in the coarser grid h.
func (s sides) dot(spans [2]*gorgonia.Node, x, y *gorgonia.Node, g, h grid) *gorgonia.Node {
	if g == h {
		return s.times(spans, x, y, g, h)
	}
	in := gorgonia.Nodes{x, y}
	if x == y {
		in = in[:1]
	}
	last := len(in) - 1
	return s.apply(primitive{
		kind: "dot", args: fmt.Sprint(g, h), shape: s.shape(h), operands: len(in),
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Dot(oncuda.Grid(g), oncuda.Grid(h), last) },
		sequence: func(w *work, _, i int) {
			w.sumRows(i, g, h, func(to []float32, r int, first bool) {
				w.dotRow(to, w.row(w.In[0].F32, g, r), w.row(w.In[last].F32, g, r), g[1], h[1], first)
			})
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			if last == 0 {
				return gorgonia.Nodes{s.times(spans, in[0], s.scaled(spans, dy, h, 2), g, h)}
			}
			return gorgonia.Nodes{s.times(spans, in[1], dy, g, h), s.times(spans, in[0], dy, g, h)}
		},
	}, spans, in...)
}

// sumRows calls add for the rows of sequence i of a matrix, with the row of the coarser one that they go to and whether
// a row is the first that does. A row that nothing goes to is cleared.
func (w *work) sumRows(i int, g, h grid, add func(to []float32, r int, first bool)) {
	at, end := w.spans[0].along(g[0], i)
	if g[0] != h[0] && (h[0] == Sequences && at == end || h[0] == One && i == 0) {
		clear(w.rowFor(w.Out.F32, h, i, 0))
	}
	for r := at; r < end; r++ {
		add(w.rowFor(w.Out.F32, h, i, r), r, g[0] == h[0] || h[0] == Sequences && r == at)
	}
}

// dotRow sets, or adds, the sums of x y.
func (w *work) dotRow(to, x, y []float32, g, h Axis, first bool) {
	switch {
	case g == h && first:
		vector.Mul(to, x, y)
	case g == h:
		y = y[:len(x)]
		for c, v := range x {
			to[c] += v * y[c]
		}
	case h == One:
		if v := vector.Dot(x, y); first {
			to[0] = v
		} else {
			to[0] += v
		}
	default:
		for j := range to {
			at, n := w.spans[1].of(j)
			if v := dot(x[at:][:n], y[at:][:n]); first {
				to[j] = v
			} else {
				to[j] += v
			}
		}
	}
}

// dot is vector.Dot, quicker for few values.
func dot(x, y []float32) float32 {
	if len(x) > 16 {
		return vector.Dot(x, y)
	}
	s := 0.
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return float32(s)
}

// sum is dot without y, of the mean with mean.
func (s sides) sum(spans [2]*gorgonia.Node, x *gorgonia.Node, g, h grid, mean bool) *gorgonia.Node {
	if g == h {
		return x
	}
	return s.apply(primitive{
		kind: "sum", args: fmt.Sprint(g, h, mean), shape: s.shape(h), operands: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Sums(oncuda.Grid(g), oncuda.Grid(h), mean) },
		sequence: func(w *work, _, i int) {
			w.sumRows(i, g, h, func(to []float32, r int, first bool) {
				w.sumRow(to, w.row(w.In[0].F32, g, r), g[1], h[1], first)
			})
			if mean {
				for r, end := w.spans[0].along(h[0], i); r < end; r++ {
					w.divide(w.row(w.Out.F32, h, r), i, g, h)
				}
			}
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.spread(spans, dy, h, g, mean)}
		},
	}, spans, x)
}

func (w *work) sumRow(to, x []float32, g, h Axis, first bool) {
	if first {
		clear(to)
	}
	switch {
	case g == h:
		vector.Add(to, to, x)
	case h == One:
		to[0] += vector.Sum(x)
	default:
		for j := range to {
			at, n := w.spans[1].of(j)
			to[j] += vector.Sum(x[at:][:n])
		}
	}
}

// divide divides values of sequence i in a matrix h by the number of tokens of grid g that are one there.
func (w *work) divide(row []float32, i int, g, h grid) {
	if g[0] == Tokens && h[0] == Sequences {
		_, n := w.spans[0].of(i)
		vector.Scale(row, 1/float32(max(1, n)), row)
	}
	if g[1] == Tokens && h[1] == Sequences {
		for j := range row {
			_, n := w.spans[1].of(j)
			row[j] /= float32(max(1, n))
		}
	}
}

// spread broadcasts x (h) to the finer grid g, divided by the number of tokens with mean.
func (s sides) spread(spans [2]*gorgonia.Node, x *gorgonia.Node, h, g grid, mean bool) *gorgonia.Node {
	return s.apply(primitive{
		kind: "spread", args: fmt.Sprint(h, g, mean), shape: s.shape(g), operands: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Spread(oncuda.Grid(g), oncuda.Grid(h), mean) },
		sequence: func(w *work, _, i int) {
			for r, end := w.spans[0].along(g[0], i); r < end; r++ {
				to, row := w.row(w.Out.F32, g, r), w.rowFor(w.In[0].F32, h, i, r)
				share := float32(1)
				if _, n := w.spans[0].of(i); mean && g[0] == Tokens && h[0] == Sequences {
					share /= float32(n)
				}
				switch {
				case g[1] == h[1]:
					vector.Scale(to, share, row)
				case h[1] == One:
					vector.Fill(to, share*row[0])
				default:
					for j, v := range row {
						at, n := w.spans[1].of(j)
						v *= share
						if mean {
							v /= float32(max(1, n))
						}
						vector.Fill(to[at:][:n], v)
					}
				}
			}
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.sum(spans, dy, g, h, mean)}
		},
	}, spans, x)
}

// plus returns a x (g) + c y (h), which is coarser.
func (s sides) plus(spans [2]*gorgonia.Node, x, y *gorgonia.Node, g, h grid, a, c float32) *gorgonia.Node {
	if g != h {
		y = s.spread(spans, y, h, g, false)
	}
	return s.apply(primitive{
		kind: "plus", args: fmt.Sprint(g, a, c), shape: s.shape(g), operands: 2, inPlace: []int{0, 1},
		on: func(m oncuda.Sides) map[string]exec.DeviceStep {
			return m.Elements("plus", oncuda.Grid(g), []oncuda.Grid{oncuda.Grid(g), oncuda.Grid(g)}, a, c)
		},
		sequence: func(w *work, _, i int) {
			for r, end := w.spans[0].along(g[0], i); r < end; r++ {
				vector.Axpby(w.row(w.Out.F32, g, r), a, w.row(w.In[0].F32, g, r), c, w.row(w.In[1].F32, g, r))
			}
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.scaled(spans, dy, g, a), s.scaled(spans, dy, g, c)}
		},
	}, spans, x, y)
}
