package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Features are vectors of the tokens of one side, (tokens, C), or of its sequences; or those of queries for each
// context, which follow each other. Pairs.Vectors says how long the longest of a computation are. Joined vectors
// are those of the sequences of queries for each context, each with those of its tokens behind it.
type Features struct {
	node *gorgonia.Node
	side SideOf
	axis Axis
	each bool
}

func (x Features) channels() int { return x.node.Shape()[1] }

// String says which rows there are.
func (x Features) String() string { return fmt.Sprint(int(x.side), x.axis, x.each) }

// rows is that for the device.
func (x Features) rows() oncuda.Vectors {
	return oncuda.Vectors{Side: int(x.side), Axis: x.axis, Each: x.each}
}

// like are vectors of the same tokens.
func (x Features) like(n *gorgonia.Node) Features { return Features{n, x.side, x.axis, x.each} }

// shapeFor is that of vectors for each context, of so many channels.
func (s sides) shapeFor(axis Axis, channels int) tensor.Shape {
	return tensor.Shape{s[1].Sequences * s[0].Size(axis), channels}
}

// rowsOf returns how many vectors of a kind the block has.
func (w *work) rowsOf(x Features) int {
	if n := w.spans[x.side].size(x.axis); !x.each {
		return n
	}
	return w.spans[0].size(x.axis) * w.spans[1].size(Sequences)
}

// vectorsOf works on the vectors of queries for context i: f is called with where each begins among all, and with which
// of those of queries it is.
func (w *work) vectorsOf(i int, axis Axis, f func(row, r int)) {
	n := w.spans[0].size(axis)
	for r := range n {
		f(i*n+r, r)
	}
}

// vectorOf returns vector r.
func vectorOf(x []float32, r, channels int) []float32 { return x[r*channels:][:channels] }

// Plus returns the sums of vectors of the same tokens.
func (x Features) Plus(y Features) Features {
	return x.like(gorgonia.Must(gorgonia.Add(x.node, y.node)))
}

// ReLU returns max(x, 0).
func (x Features) ReLU() Features { return x.like(nn.ReLU(x.node)) }

// Repeat returns vectors of queries for each context, or of the sequences of contexts for each sequence of queries.
func (b *Block) Repeat(x Features) Features {
	b.need(!x.each && (x.side == Queries || x.axis == Sequences), "want vectors of queries, or of sequences")
	s, spans, channels := b.sides, b.spans, x.channels()
	if x.side == Queries {
		node := s.apply(primitive{
			kind: "repeat", args: x.String(), shape: s.shapeFor(x.axis, channels), operands: 1, over: 1,
			on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Repeat(x.rows()) },
			sequence: func(w *work, _, i int) {
				n := w.spans[0].size(x.axis) * channels
				copy(w.Out.F32[i*n:][:n], w.In[0].F32)
			},
			grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
				return gorgonia.Nodes{s.sumContexts(spans, dy, x.axis, 1)}
			},
		}, spans, x.node)
		return Features{node, Queries, x.axis, true}
	}
	shape := x.node.Shape()
	node := s.apply(primitive{
		kind: "repeat", args: x.String(), shape: s.shapeFor(Sequences, channels), operands: 1, over: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Repeat(x.rows()) },
		sequence: func(w *work, _, i int) {
			w.vectorsOf(i, Sequences, func(row, _ int) {
				copy(vectorOf(w.Out.F32, row, channels), vectorOf(w.In[0].F32, i, channels))
			})
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "sum of sequences", shape: shape, operands: 1, over: 1,
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SumSequences() },
				sequence: func(w *work, _, i int) {
					to := vectorOf(w.Out.F32, i, channels)
					clear(to)
					w.vectorsOf(i, Sequences, func(row, _ int) { vector.Add(to, to, vectorOf(w.In[0].F32, row, channels)) })
				},
			}, spans, dy)}
		},
	}, spans, x.node)
	return Features{node, Queries, Sequences, true}
}

// sumContexts returns a times the sums over contexts of vectors for each.
func (s sides) sumContexts(spans [2]*gorgonia.Node, x *gorgonia.Node, axis Axis, a float32) *gorgonia.Node {
	channels := x.Shape()[1]
	return s.apply(primitive{
		kind: "sum of contexts", args: fmt.Sprint(axis, a), shape: tensor.Shape{s[0].Size(axis), channels}, operands: 1,
		adds: true,
		on:   func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SumContexts(a) },
		sequence: func(w *work, _, i int) {
			at, end := w.spans[0].along(axis, i)
			step, to := w.spans[0].size(axis)*channels, w.Out.F32[at*channels:end*channels]
			if !w.Accumulate {
				clear(to)
			}
			for k := range w.spans[1].size(Sequences) {
				vector.Axpy(to, a, w.In[0].F32[k*step+at*channels:][:len(to)])
			}
		},
	}, spans, x)
}

// Matrix returns the values of sequences of queries for each context, vectors of one channel.
func (b *Block) Matrix(x Features) Matrix {
	b.need(x.each && x.axis == Sequences && x.channels() == 1, "want one value of each sequence for each context")
	s, spans, g := b.sides, b.spans, grid{Sequences, Sequences}
	of := func(kind string, shape tensor.Shape, over int,
		grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes, x *gorgonia.Node) *gorgonia.Node {
		return s.apply(primitive{
			kind: kind, shape: shape, operands: 1, over: over, grad: grad,
			on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Transpose(over) },
			sequence: func(w *work, _, i int) {
				n, m := w.spans[over].size(Sequences), w.spans[1-over].size(Sequences)
				for k := range m {
					w.Out.F32[i*m+k] = w.In[0].F32[k*n+i]
				}
			},
		}, spans, x)
	}
	node := of("matrix of vectors", s.shape(g), 0, func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{of("vectors of a matrix", x.node.Shape(), 1, nil, dy)}
	}, x.node)
	return Matrix{b, node, g}
}
