package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Products returns the products of all tokens q of the queries with all tokens k of the contexts over their channels,
// in the precision of the engine.
func (b *Block) Products(q, k Features) Matrix {
	b.need(q.side == Queries && k.side == Contexts, "products are those of queries with contexts")
	b.need(q.channels() == k.channels(), "queries and contexts must have as many channels (got %d and %d)",
		q.channels(), k.channels())
	channels := q.channels()
	s, spans := b.sides, b.spans
	both := s[0].Tokens * s[1].Tokens
	g := grid{Tokens, Tokens}
	// part is a product of two of the queries (0), the contexts (1) and the matrix (2), of tokens of m or channels.
	part := func(kind string, mode oncuda.Mode, shape tensor.Shape, run func(w *work, p *gemm.Product),
		grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes, in ...*gorgonia.Node) *gorgonia.Node {
		return s.apply(primitive{
			kind: kind, args: fmt.Sprint(channels), shape: shape, operands: 2, grad: grad,
			flops: 2 * int64(both) * int64(channels), adds: true,
			on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Product(mode) },
			begin: func(w *work) {
				p := w.product
				p.Beta, p.C = op.Beta(w.Call), w.Out.F32
				run(w, p)
				if p.M > 0 && p.N > 0 {
					w.Engine.Multiply(p)
				}
			},
		}, spans, in...)
	}
	node := part("products", oncuda.Scores, s.shape(g), func(w *work, p *gemm.Product) {
		p.TransB, p.M, p.N, p.K = true, w.spans[0].size(Tokens), w.spans[1].size(Tokens), channels
		p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: channels}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
		p.LDC = p.N
	}, func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		dq := part("products dqueries", oncuda.Rows, in[0].Shape(), func(w *work, p *gemm.Product) {
			p.M, p.N, p.K = w.spans[0].size(Tokens), channels, w.spans[1].size(Tokens)
			p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: p.K}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
			p.LDC = channels
		}, nil, dy, in[1])
		dk := part("products dcontexts", oncuda.Columns, in[1].Shape(), func(w *work, p *gemm.Product) {
			p.TransA, p.M, p.N, p.K = true, w.spans[1].size(Tokens), channels, w.spans[0].size(Tokens)
			p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: p.M}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
			p.LDC = channels
		}, nil, dy, in[0])
		return gorgonia.Nodes{dq, dk}
	}, q.node, k.node)
	return Matrix{b, node, g}
}

// SquaredNorms returns |x|^2 of the tokens of a side: a column for queries, a row for contexts.
func (b *Block) SquaredNorms(x Features) Matrix {
	g := grid{Tokens, One}
	if x.side == Contexts {
		g = grid{One, Tokens}
	}
	s, spans, channels := b.sides, b.spans, x.channels()
	node := s.apply(primitive{
		kind: "squared norms", args: fmt.Sprint(x.side), shape: s.shape(g), operands: 1, over: int(x.side),
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredNorms(int(x.side)) },
		sequence: func(w *work, _, i int) {
			at, n := w.spans[x.side].of(i)
			for r := at; r < at+n; r++ {
				w.Out.F32[r] = float32(vector.SumSq(w.In[0].F32[r*channels:][:channels]))
			}
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "squared norms drows", args: fmt.Sprint(x.side), shape: in[0].Shape(), operands: 2,
				over: int(x.side), adds: true,
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredNormSlopes(int(x.side)) },
				sequence: func(w *work, _, i int) {
					at, n := w.spans[x.side].of(i)
					for r := at; r < at+n; r++ {
						to, row := w.Out.F32[r*channels:][:channels], w.In[0].F32[r*channels:][:channels]
						if d := 2 * w.In[1].F32[r]; w.Accumulate {
							vector.Axpy(to, d, row)
						} else {
							vector.Scale(to, d, row)
						}
					}
				},
			}, spans, in[0], dy)}
		},
	}, spans, x.node)
	return Matrix{b, node, g}
}

// gram returns the products of the tokens of each context with each other: rows of Len values, of which the first n^2
// of the n rows of a context are its matrix.
func (b *Block) gram(x Features) *gorgonia.Node {
	s, spans, channels := b.sides, b.spans, x.channels()
	side := int(x.side)
	length := s[side].Len
	flops := 2 * int64(s[side].Tokens) * int64(length) * int64(channels)
	shape := tensor.Shape{s[side].Tokens, length}
	return s.apply(primitive{
		kind: "gram", args: fmt.Sprint(side), shape: shape, operands: 1, over: side, flops: flops,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Gram(side) },
		sequence: func(w *work, worker, i int) {
			at, n := w.spans[side].of(i)
			p, rows := w.serial[worker], gemm.Matrix{F32: w.In[0].F32[at*channels:], LD: channels}
			p.TransB, p.M, p.N, p.K, p.A, p.B, p.C, p.LDC = true, n, n, channels, rows, rows, w.Out.F32[at*length:], n
			if n > 0 {
				w.Engine.MultiplySerial(p)
			}
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{ // of a symmetric gradient
				kind: "gram drows", args: fmt.Sprint(side), shape: in[0].Shape(), operands: 2, over: side, flops: flops,
				adds: true,
				on:   func(m oncuda.Sides) map[string]exec.DeviceStep { return m.GramSlopes(side) },
				sequence: func(w *work, worker, i int) {
					at, n := w.spans[side].of(i)
					p := w.serial[worker]
					p.Alpha, p.Beta, p.M, p.N, p.K = 2, op.Beta(w.Call), n, channels, n
					p.A = gemm.Matrix{F32: w.In[1].F32[at*length:], LD: n}
					p.B = gemm.Matrix{F32: w.In[0].F32[at*channels:], LD: channels}
					p.C, p.LDC = w.Out.F32[at*channels:], channels
					if n > 0 {
						w.Engine.MultiplySerial(p)
					}
				},
			}, spans, in[0], dy)}
		},
	}, spans, x.node)
}

// SquaredLengths returns |sum_k w_qk k|^2 of each query and context with weights of the tokens k of contexts, as w G w
// with the products G of the tokens of a context: no sum is made.
func (b *Block) SquaredLengths(weights Matrix, k Features) Matrix {
	b.need(weights.grid == grid{Tokens, Tokens} && k.side == Contexts, "want weights of all tokens of contexts")
	s, spans := b.sides, b.spans
	g := grid{Tokens, Sequences}
	full := s.shape(weights.grid)
	length := s[1].Len
	flops := 2 * int64(s[0].Tokens) * int64(s[1].Tokens) * int64(length)
	node := s.apply(primitive{
		kind: "squared lengths", shape: s.shape(g), operands: 2, over: 1, flops: flops, aux: []tensor.Shape{full},
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredLengths() },
		sequence: func(w *work, worker, i int) {
			at, n := w.spans[1].of(i)
			rows, ld, contexts := w.spans[0].size(Tokens), w.spans[1].size(Tokens), w.spans[1].size(Sequences)
			x, mixed := w.In[0].F32, w.Aux[0].F32
			if n > 0 && rows > 0 {
				w.Engine.GemmSerial(false, false, rows, n, n, 1, x[at:], ld, w.In[1].F32[at*length:], n, 0, mixed[at:],
					ld)
			}
			for r := range rows {
				w.Out.F32[r*contexts+i] = max(0, dot(x[r*ld+at:][:n], mixed[r*ld+at:][:n]))
			}
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			d := s.apply(primitive{
				kind: "squared lengths dweights", shape: full, operands: 3, over: 1, flops: flops, adds: true,
				aux: []tensor.Shape{in[1].Shape()}, scratch: func(int) int { return full.TotalSize() },
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredLengthSlopes() },
				sequence: func(w *work, _, i int) {
					at, n := w.spans[1].of(i)
					rows, ld, contexts := w.spans[0].size(Tokens), w.spans[1].size(Tokens), w.spans[1].size(Sequences)
					x, mixed := w.In[0].F32, w.InAux[1][0].F32
					for r := range rows {
						from, d := r*ld+at, w.In[2].F32[r*contexts+i]
						if to := w.Out.F32[from:][:n]; w.Accumulate {
							vector.Axpy(to, 2*d, mixed[from:][:n])
						} else {
							vector.Scale(to, 2*d, mixed[from:][:n])
						}
						vector.Scale(w.Scratch[from:][:n], d, x[from:][:n])
					}
					if gram := w.Aux[0].F32[at*length:]; n > 0 && rows > 0 {
						w.Engine.GemmSerial(true, false, n, n, rows, 1, x[at:], ld, w.Call.Scratch[at:], ld, 0, gram, n)
					} else if n > 0 {
						clear(gram[:n*n])
					}
				},
			}, spans, in[0], out, dy)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape())}
		},
	}, spans, weights.node, b.gram(k))
	return Matrix{b, node, g}
}
