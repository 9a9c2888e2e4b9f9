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
// in the precision of the engine. Vectors of queries may be those for each context.
func (b *Block) Products(q, k Features) Matrix {
	b.need(q.side == Queries && k.side == Contexts, "products are those of queries with contexts")
	b.need(q.channels() == k.channels(), "queries and contexts must have as many channels (got %d and %d)",
		q.channels(), k.channels())
	if q.each {
		return b.productsEach(q, k)
	}
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

// SquaredNorms returns |x|^2 of the tokens of a side, a column for queries, a row for contexts; or of vectors for each
// context, a column for each.
func (b *Block) SquaredNorms(x Features) Matrix {
	if x.each {
		return Matrix{b, b.sides.rowDots(b.spans, x, x.node, x.node), grid{x.axis, Sequences}}
	}
	b.need(x.axis == Tokens, "want vectors of tokens")
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

// SquaredLengths returns |sum_k w_qk k|^2 of each query and context with weights of the tokens k of contexts, or of
// queries, as w G w with the products G of the tokens of a sequence: no sum is made.
func (b *Block) SquaredLengths(weights Matrix, k Features) Matrix {
	full := grid{Tokens, Tokens}
	b.need(weights.grid == full, "want weights of all tokens")
	s, spans, side := b.sides, b.spans, int(k.side)
	g := weights.over(k.side)
	length := s[side].Len
	flops := 2 * int64(s[0].Tokens) * int64(s[1].Tokens) * int64(length)
	lengths, slopes := (*work).contextLengths, (*work).contextLengthSlopes
	if side == 0 {
		lengths, slopes = (*work).queryLengths, (*work).queryLengthSlopes
	}
	node := s.apply(primitive{
		kind: "squared lengths", args: fmt.Sprint(side), shape: s.shape(g), operands: 2, over: side, flops: flops,
		aux: []tensor.Shape{s.shape(full)},
		on:  func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredLengths(side) },
		sequence: func(w *work, _, i int) {
			if at, n := w.spans[side].of(i); n > 0 {
				lengths(w, i, at, n, w.In[1].F32[at*length:])
			} else {
				w.clearLengths(side, i)
			}
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			d := s.apply(primitive{
				kind: "squared lengths dweights", args: fmt.Sprint(side), shape: s.shape(full), operands: 3, over: side,
				flops: flops, adds: true, aux: []tensor.Shape{in[1].Shape()},
				scratch: func(int) int { return s.shape(full).TotalSize() },
				on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SquaredLengthSlopes(side) },
				sequence: func(w *work, _, i int) {
					if at, n := w.spans[side].of(i); n > 0 {
						gram := w.Aux[0].F32[at*length:][:n*n]
						clear(gram)
						slopes(w, i, at, n, gram)
					}
				},
			}, spans, in[0], out, dy)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape())}
		},
	}, spans, weights.node, b.gram(k))
	return Matrix{b, node, g}
}

// clearLengths clears what belongs to a sequence without a token.
func (w *work) clearLengths(side, i int) {
	if side == 0 {
		clear(w.row(w.Out.F32, grid{Sequences, Tokens}, i))
		return
	}
	for r := range w.spans[0].size(Tokens) {
		w.row(w.Out.F32, grid{Tokens, Sequences}, r)[i] = 0
	}
}

// contextLengths makes w G, which is kept, and w G w of context i, whose n columns begin at one.
func (w *work) contextLengths(i, at, n int, gram []float32) {
	rows, ld, contexts := w.spans[0].size(Tokens), w.spans[1].size(Tokens), w.spans[1].size(Sequences)
	if rows == 0 {
		return
	}
	x, mixed := w.In[0].F32[at:], w.Aux[0].F32[at:]
	w.Engine.GemmSerial(false, false, rows, n, n, 1, x, ld, gram, n, 0, mixed, ld)
	for r := range rows {
		w.Out.F32[r*contexts+i] = max(0, dot(x[r*ld:][:n], mixed[r*ld:][:n]))
	}
}

func (w *work) contextLengthSlopes(i, at, n int, gram []float32) {
	rows, ld, contexts := w.spans[0].size(Tokens), w.spans[1].size(Tokens), w.spans[1].size(Sequences)
	if rows == 0 {
		return
	}
	x, mixed, scaled := w.In[0].F32[at:], w.InAux[1][0].F32[at:], w.Scratch[at:]
	for r := range rows {
		d := w.In[2].F32[r*contexts+i]
		if to := w.Out.F32[r*ld+at:][:n]; w.Accumulate {
			vector.Axpy(to, 2*d, mixed[r*ld:][:n])
		} else {
			vector.Scale(to, 2*d, mixed[r*ld:][:n])
		}
		vector.Scale(scaled[r*ld:][:n], d, x[r*ld:][:n])
	}
	w.Engine.GemmSerial(true, false, n, n, rows, 1, x, ld, scaled, ld, 0, gram, n)
}

// queryLengths makes G w, which is kept, and w G w of sequence i of queries, whose n rows begin at one.
func (w *work) queryLengths(i, at, n int, gram []float32) {
	ld := w.spans[1].size(Tokens)
	x, mixed, out := w.In[0].F32[at*ld:], w.Aux[0].F32[at*ld:], w.Out.F32[i*ld:][:ld]
	if ld == 0 {
		return
	}
	w.Engine.GemmSerial(false, false, n, ld, n, 1, gram, n, x, ld, 0, mixed, ld)
	for r := range n {
		w.dotRow(out, x[r*ld:][:ld], mixed[r*ld:][:ld], Tokens, Tokens, r == 0)
	}
	vector.ReLU(out, out)
}

func (w *work) queryLengthSlopes(i, at, n int, gram []float32) {
	ld := w.spans[1].size(Tokens)
	x, mixed, d := w.In[0].F32[at*ld:], w.InAux[1][0].F32[at*ld:], w.In[2].F32[i*ld:][:ld]
	if ld == 0 {
		return
	}
	for r := range n {
		to, scaled := w.Out.F32[(at+r)*ld:][:ld], w.Scratch[(at+r)*ld:][:ld]
		vector.Mul(scaled, d, mixed[r*ld:][:ld])
		if w.Accumulate {
			vector.Axpy(to, 2, scaled)
		} else {
			vector.Scale(to, 2, scaled)
		}
		vector.Mul(scaled, d, x[r*ld:][:ld])
	}
	w.Engine.GemmSerial(false, true, n, n, ld, 1, x, ld, w.Scratch[at*ld:], ld, 0, gram, n)
}
