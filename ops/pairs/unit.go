package pairs

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Unit returns x / (|x| + eps) of vectors for each context. The gradient through a length of 0 is that of x.
func (b *Block) Unit(x Features, eps float32) Features {
	b.need(x.each, "want vectors for each context")
	channels, s, spans := x.channels(), b.sides, b.spans
	shape, args := x.node.Shape(), fmt.Sprint(x, eps)
	lengths := []tensor.Shape{{shape[0]}}
	node := s.apply(primitive{
		kind: "unit", args: args, shape: shape, operands: 1, over: 1, aux: lengths, inPlace: []int{0},
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Unit(x.axis, channels, eps) },
		sequence: func(w *work, _, i int) {
			w.vectorsOf(i, x.axis, func(row, _ int) {
				x := vectorOf(w.In[0].F32, row, channels)
				length := float32(math.Sqrt(vector.SumSq(x)))
				w.Aux[0].F32[row] = length
				vector.Scale(vectorOf(w.Out.F32, row, channels), 1/(length+eps), x)
			})
		},
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "unit slope", args: args, shape: shape, operands: 2, over: 1, inPlace: []int{1},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.UnitSlopes(x.axis, channels, eps) },
				// dx = dy/(n+eps) - y (y.dy)/n
				sequence: func(w *work, _, i int) {
					w.vectorsOf(i, x.axis, func(row, _ int) {
						y, dy := vectorOf(w.In[0].F32, row, channels), vectorOf(w.In[1].F32, row, channels)
						inverse, along := float32(1), float32(0)
						if length := w.InAux[0][0].F32[row]; length > 0 {
							inverse, along = 1/(length+eps), -vector.Dot(y, dy)/length
						}
						vector.Axpby(vectorOf(w.Out.F32, row, channels), inverse, dy, along, y)
					})
				},
			}, spans, out, dy)}
		},
	}, spans, x.node)
	return x.like(node)
}

// SquaredDifference returns (a x - y)^2 of vectors x for each context, with a factor a of each, 1 without a matrix, and
// vectors y of queries.
func (b *Block) SquaredDifference(x Features, a Matrix, y Features) Features {
	b.need(x.each && !y.each && y.side == Queries && x.axis == y.axis && x.channels() == y.channels(),
		"want vectors of queries for each context and of queries")
	b.need(a.node == nil || a.grid == grid{x.axis, Sequences}, "want a factor of each vector")
	s, spans, channels := b.sides, b.spans, x.channels()
	scaled := a.node != nil
	in := gorgonia.Nodes{x.node, y.node}
	if scaled {
		in = append(in, a.node)
	}
	// factor is that of a vector.
	factor := func(w *work, i, r int) float32 {
		if scaled {
			return w.In[2].F32[r*w.spans[1].size(Sequences)+i]
		}
		return 1
	}
	of := func(kind string, slope bool, each func(w *work, worker, i, row, r int),
		grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes, in ...*gorgonia.Node) *gorgonia.Node {
		p := primitive{
			kind: kind, args: fmt.Sprint(x, scaled), shape: x.node.Shape(), operands: len(in), over: 1, grad: grad,
			scratch: func(threads int) int { return threads * channels },
			on: func(m oncuda.Sides) map[string]exec.DeviceStep {
				return m.SquaredDifference(x.axis, channels, scaled, slope)
			},
			sequence: func(w *work, worker, i int) {
				w.vectorsOf(i, x.axis, func(row, r int) { each(w, worker, i, row, r) })
			},
		}
		if slope {
			p.inPlace = []int{len(in) - 1}
		}
		return s.apply(p, spans, in...)
	}
	node := of("squared difference", false, func(w *work, _, i, row, r int) {
		to := vectorOf(w.Out.F32, row, channels)
		vector.Axpby(to, factor(w, i, r), vectorOf(w.In[0].F32, row, channels), -1, vectorOf(w.In[1].F32, r, channels))
		vector.Mul(to, to, to)
	}, func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		d := of("squared difference slope", true, func(w *work, worker, i, row, r int) { // 2 (a x - y) dy
			twice := vectorOf(w.Scratch, worker, channels)
			vector.Axpby(twice, 2*factor(w, i, r), vectorOf(w.In[0].F32, row, channels), -2, vectorOf(w.In[1].F32, r, channels))
			dy := w.In[len(in)].F32
			vector.Mul(vectorOf(w.Out.F32, row, channels), vectorOf(dy, row, channels), twice)
		}, nil, append(append(gorgonia.Nodes{}, in...), dy)...)
		slopes := gorgonia.Nodes{d, s.sumContexts(spans, d, x.axis, -1)}
		if scaled {
			slopes[0] = s.rowTimes(spans, x, d, in[2])
			slopes = append(slopes, s.rowDots(spans, x, in[0], d))
		}
		return slopes
	}, in...)
	return x.like(node)
}

// rowTimes returns vectors x of a kind times the value of each in a matrix.
func (s sides) rowTimes(spans [2]*gorgonia.Node, of Features, x, by *gorgonia.Node) *gorgonia.Node {
	channels := of.channels()
	return s.apply(primitive{
		kind: "row times", args: of.String(), shape: x.Shape(), operands: 2, over: 1, adds: true, inPlace: []int{0},
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.RowTimes(of.axis, channels) },
		sequence: func(w *work, _, i int) {
			w.vectorsOf(i, of.axis, func(row, r int) {
				to, x, a := vectorOf(w.Out.F32, row, channels), vectorOf(w.In[0].F32, row, channels),
					w.In[1].F32[r*w.spans[1].size(Sequences)+i]
				if w.Accumulate {
					vector.Axpy(to, a, x)
				} else {
					vector.Scale(to, a, x)
				}
			})
		},
	}, spans, x, by)
}

// rowDots returns the products of vectors x and y of a kind, which may be the same: a row for each of queries, a column
// for each context.
func (s sides) rowDots(spans [2]*gorgonia.Node, of Features, x, y *gorgonia.Node) *gorgonia.Node {
	channels, g := of.channels(), grid{of.axis, Sequences}
	in := gorgonia.Nodes{x, y}
	if x == y {
		in = in[:1]
	}
	last := len(in) - 1
	return s.apply(primitive{
		kind: "row dots", args: of.String(), shape: s.shape(g), operands: len(in), over: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.RowDots(of.axis, channels, last) },
		sequence: func(w *work, _, i int) {
			w.vectorsOf(i, of.axis, func(row, r int) {
				w.Out.F32[r*w.spans[1].size(Sequences)+i] = vector.Dot(vectorOf(w.In[0].F32, row, channels),
					vectorOf(w.In[last].F32, row, channels))
			})
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			if last == 0 {
				return gorgonia.Nodes{s.rowTimes(spans, of, in[0], s.scaled(spans, dy, g, 2))}
			}
			return gorgonia.Nodes{s.rowTimes(spans, of, in[1], dy), s.rowTimes(spans, of, in[0], dy)}
		},
	}, spans, in...)
}
