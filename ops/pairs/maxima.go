package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Max returns the largest value over the tokens of each sequence of a side, 0 of none. Of equal ones the first counts,
// a NaN only where it is first or all are. The gradient goes to the one that is returned.
func (m Matrix) Max(side SideOf) Matrix {
	g, h := m.grid, m.over(side)
	s, spans := m.b.sides, m.b.spans
	node := s.apply(primitive{
		kind: "max", args: fmt.Sprint(g, side), shape: s.shape(h), operands: 1, aux: []tensor.Shape{s.shape(h)},
		places: true,
		on:     func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Max(oncuda.Grid(g), oncuda.Grid(h)) },
		sequence: func(w *work, _, i int) {
			if side == Contexts {
				for r, end := w.spans[0].along(g[0], i); r < end; r++ {
					w.maxRow(w.row(w.Out.F32, h, r), w.rowOfPlaces(h, r), w.row(w.In[0].F32, g, r))
				}
				return
			}
			at, end := w.spans[0].along(Tokens, i)
			top, places := w.row(w.Out.F32, h, i), w.rowOfPlaces(h, i)
			if clear(top); end > at {
				copy(top, w.row(w.In[0].F32, g, at))
			}
			for c := range places {
				places[c] = int32(at)
			}
			for r := at + 1; r < end; r++ {
				for c, v := range w.row(w.In[0].F32, g, r) {
					if v > top[c] {
						top[c], places[c] = v, int32(r)
					}
				}
			}
		},
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "max slope", args: fmt.Sprint(g, side), shape: s.shape(g), operands: 2, adds: true,
				on: func(m oncuda.Sides) map[string]exec.DeviceStep {
					return m.MaxSlopes(oncuda.Grid(g), oncuda.Grid(h))
				},
				sequence: func(w *work, _, i int) { w.maxSlopes(i, side, g, h) },
			}, spans, out, dy)}
		},
	}, spans, m.node)
	return m.with(node, h)
}

// rowOfPlaces are the places of the maxima of row r.
func (w *work) rowOfPlaces(h grid, r int) []int32 {
	n := w.spans[1].size(h[1])
	return w.Aux[0].I32[r*n:][:n]
}

// maxRow sets the maxima of the contexts of a row and their places.
func (w *work) maxRow(top []float32, places []int32, x []float32) {
	for j := range top {
		at, n := w.spans[1].of(j)
		if top[j], places[j] = 0, int32(at); n > 0 {
			k := at + vector.ArgMax(x[at:][:n])
			top[j], places[j] = x[k], int32(k)
		}
	}
}

// maxSlopes sets, or adds, the gradients of maxima in the rows of sequence i.
func (w *work) maxSlopes(i int, side SideOf, g, h grid) {
	at, end := w.spans[0].along(g[0], i)
	n := w.spans[1].size(g[1])
	to, dy, places := w.Out.F32, w.In[1].F32, w.InAux[0][0].I32
	if !w.Accumulate {
		clear(to[at*n : end*n])
	}
	if side == Queries {
		for c := range n {
			if end > at {
				to[int(places[i*n+c])*n+c] += dy[i*n+c]
			}
		}
		return
	}
	m := w.spans[1].size(h[1])
	for r := at; r < end; r++ {
		for j := range m {
			if _, k := w.spans[1].of(j); k > 0 {
				to[r*n+int(places[r*m+j])] += dy[r*m+j]
			}
		}
	}
}

// Below returns x where the value of another matrix is below 0, else 0. The gradient goes to x alone.
func (m Matrix) Below(other Matrix) Matrix {
	g := m.grid
	m.b.need(g == other.grid, "the condition has other rows or columns")
	s, spans := m.b.sides, m.b.spans
	var of func(x, y *gorgonia.Node) *gorgonia.Node
	of = func(x, y *gorgonia.Node) *gorgonia.Node {
		return s.apply(primitive{
			kind: "below", args: fmt.Sprint(g), shape: s.shape(g), operands: 2, fixed: 1, inPlace: []int{0},
			on: func(m oncuda.Sides) map[string]exec.DeviceStep {
				return m.Elements("below", oncuda.Grid(g), []oncuda.Grid{oncuda.Grid(g), oncuda.Grid(g)})
			},
			sequence: func(w *work, _, i int) {
				for r, end := w.spans[0].along(g[0], i); r < end; r++ {
					to, x, y := w.row(w.Out.F32, g, r), w.row(w.In[0].F32, g, r), w.row(w.In[1].F32, g, r)
					for c, v := range x {
						if to[c] = v; y[c] >= 0 {
							to[c] = 0
						}
					}
				}
			},
			grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
				return gorgonia.Nodes{of(dy, in[1])}
			},
		}, spans, x, y)
	}
	return m.with(of(m.node, other.node), g)
}

// Blend returns sum_l softmax_l(scale x_q.x_l) m_l over the tokens l of the sequence of each token q of queries. It has
// no gradient.
func (m Matrix) Blend(x Features, scale float32) Matrix {
	g := m.grid
	m.b.need(g[0] == Tokens && x.side == Queries, "blends are those of tokens of queries")
	s, spans := m.b.sides, m.b.spans
	length := s[0].Len
	node := s.apply(primitive{
		kind: "blend", args: fmt.Sprint(g, scale), shape: s.shape(g), operands: 2, fixed: 2,
		scratch: func(threads int) int { return threads * length * length },
		on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Blend(oncuda.Grid(g), scale) },
		grad:    func(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) gorgonia.Nodes { return nil },
		sequence: func(w *work, worker, i int) {
			at, n := w.spans[0].of(i)
			ld := w.spans[1].size(g[1])
			if n == 0 || ld == 0 {
				return
			}
			shares := w.Scratch[worker*length*length:][:n*n]
			vector.Scale(shares, scale, w.In[1].F32[at*length:][:n*n])
			for r := range n {
				vector.Softmax(shares[r*n:][:n], shares[r*n:][:n])
			}
			w.Engine.GemmSerial(false, false, n, ld, n, 1, shares, n, w.In[0].F32[at*ld:], ld, 0, w.Out.F32[at*ld:], ld)
		},
	}, spans, m.node, m.b.gram(x))
	return m.with(node, g)
}

// Count returns how many tokens each sequence of a side has: a column for queries, a row for contexts.
func (b *Block) Count(side SideOf) Matrix {
	g, h := grid{Tokens, One}, grid{Sequences, One}
	if side == Contexts {
		g, h = grid{One, Tokens}, grid{One, Sequences}
	}
	s := b.sides
	node := s.apply(primitive{
		kind: "count", args: fmt.Sprint(side), shape: s.shape(h), over: int(side),
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Count(oncuda.Grid(g), oncuda.Grid(h)) },
		sequence: func(w *work, _, i int) {
			_, n := w.spans[side].of(i)
			w.Out.F32[i] = float32(n)
		},
	}, b.spans)
	return Matrix{b, node, h}
}
