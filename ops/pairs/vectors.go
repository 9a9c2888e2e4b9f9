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

// Linear returns W x + b of vectors with a shared weight (out, in) and, where bias is not negative, a shared bias
// (out). Gradients of both are sums over the vectors of the block.
func (b *Block) Linear(x Features, weight, bias int) Features {
	in := gorgonia.Nodes{x.node, b.shared[weight]}
	if bias >= 0 {
		in = append(in, b.shared[bias])
	}
	shape, channels := in[1].Shape(), x.channels()
	b.need(len(shape) == 2 && shape[1] == channels, "want a weight (out, %d) (got %v)", channels, shape)
	out := shape[0]
	b.need(len(in) == 2 || in[2].Shape().TotalSize() == out, "want a bias (%d)", out)
	s, spans := b.sides, b.spans
	rows := x.node.Shape()[0]
	part := func(kind string, mode oncuda.LinearMode, shape tensor.Shape, run func(w *work, p *gemm.Product, n int),
		grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes, in ...*gorgonia.Node) *gorgonia.Node {
		return s.apply(primitive{
			kind: kind, args: fmt.Sprint(x), shape: shape, operands: len(in), grad: grad, adds: true,
			flops: 2 * int64(rows) * int64(channels) * int64(out),
			on: func(m oncuda.Sides) map[string]exec.DeviceStep {
				return m.Linear(mode, x.rows())
			},
			begin: func(w *work) {
				p := w.product
				p.Beta, p.C = op.Beta(w.Call), w.Out.F32
				if run(w, p, w.rowsOf(x)); p.M > 0 && p.K > 0 {
					w.Engine.Multiply(p)
				} else if !w.Accumulate {
					clear(p.C[:p.M*p.N])
				}
			},
		}, spans, in...)
	}
	node := part("linear", oncuda.LinearRows, tensor.Shape{rows, out}, func(w *work, p *gemm.Product, n int) {
		p.TransB, p.M, p.N, p.K, p.LDC = true, n, out, channels, out
		p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: channels}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
		if bias >= 0 {
			p.Bias = w.In[2].F32
		}
	}, func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		dx := part("linear drows", oncuda.LinearSlopes, in[0].Shape(), func(w *work, p *gemm.Product, n int) {
			p.M, p.N, p.K, p.LDC = n, channels, out, channels
			p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: out}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
		}, nil, dy, in[1])
		dw := part("linear dweight", oncuda.LinearWeights, in[1].Shape(), func(w *work, p *gemm.Product, n int) {
			p.TransA, p.M, p.N, p.K, p.LDC = true, out, channels, n, channels
			p.A, p.B = gemm.Matrix{F32: w.In[0].F32, LD: out}, gemm.Matrix{F32: w.In[1].F32, LD: channels}
		}, nil, dy, in[0])
		if len(in) == 2 {
			return gorgonia.Nodes{dx, dw}
		}
		db := s.apply(primitive{
			kind: "linear dbias", args: fmt.Sprint(x), shape: in[2].Shape(), operands: 1, adds: true,
			on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.LinearBias() },
			begin: func(w *work) {
				if !w.Accumulate {
					clear(w.Out.F32)
				}
				vector.SumRows(w.Out.F32, w.In[0].F32[:w.rowsOf(x)*out])
			},
		}, spans, dy)
		return gorgonia.Nodes{dx, dw, db}
	}, in...)
	return x.like(node)
}

// eachContext is a primitive of products of the part of a matrix (0) that a context has, its vectors (1), and vectors
// of queries for it (2): run fills in the product of context i, whose n tokens begin at one.
func (s sides) eachContext(kind string, mode oncuda.EachMode, shape tensor.Shape, channels int, bf16 bool,
	spans [2]*gorgonia.Node, run func(w *work, p *gemm.Product, of eachContext),
	grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes, in ...*gorgonia.Node) *gorgonia.Node {
	return s.apply(primitive{
		kind: kind, args: fmt.Sprint(channels, bf16), shape: shape, operands: len(in), grad: grad, over: 1, adds: true,
		flops: 2 * int64(s[0].Tokens) * int64(s[1].Tokens) * int64(channels),
		on:    func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Each(mode, channels, bf16) },
		sequence: func(w *work, worker, i int) {
			at, n := w.spans[1].of(i)
			rows := w.spans[0].size(Tokens)
			p := w.serial[worker]
			p.Beta, p.BF16 = op.Beta(w.Call), bf16 && w.Engine.BF16()
			run(w, p, eachContext{at, n, rows, w.spans[1].size(Tokens), i * rows, channels})
			if p.M > 0 && p.N > 0 && p.K > 0 {
				w.Engine.MultiplySerial(p)
				return
			}
			for r := 0; r < p.M && !w.Accumulate; r++ {
				clear(p.C[r*p.LDC:][:p.N])
			}
		},
	}, spans, in...)
}

// eachContext is where a context has its n tokens, and rows queries, in matrices and vectors.
type eachContext struct{ at, n, rows, ld, row, channels int }

func (c eachContext) matrix(x []float32) gemm.Matrix {
	return gemm.Matrix{F32: x[min(c.at, len(x)):], LD: c.ld}
}

func (c eachContext) context(x []float32) gemm.Matrix {
	return gemm.Matrix{F32: x[c.at*c.channels:], LD: c.channels}
}

func (c eachContext) queries(x []float32) gemm.Matrix {
	return gemm.Matrix{F32: x[c.row*c.channels:], LD: c.channels}
}

// toMatrix, toContext and toQueries are the products of the other two, of which x and y are operands; of those of a
// product over channels x are vectors of queries.
func toMatrix(w *work, p *gemm.Product, c eachContext) {
	p.TransA, p.TransB, p.M, p.N, p.K = false, true, c.rows, c.n, c.channels
	p.A, p.B, p.C, p.LDC = c.queries(w.In[0].F32), c.context(w.In[1].F32), c.matrix(w.Out.F32).F32, c.ld
}

func toContext(w *work, p *gemm.Product, c eachContext) {
	p.TransA, p.TransB, p.M, p.N, p.K = true, false, c.n, c.channels, c.rows
	p.A, p.B, p.C, p.LDC = c.matrix(w.In[0].F32), c.queries(w.In[1].F32), c.context(w.Out.F32).F32, c.channels
}

func toQueries(w *work, p *gemm.Product, c eachContext) {
	p.TransA, p.TransB, p.M, p.N, p.K = false, false, c.rows, c.channels, c.n
	p.A, p.B, p.C, p.LDC = c.matrix(w.In[0].F32), c.context(w.In[1].F32), c.queries(w.Out.F32).F32, c.channels
}

// Mix returns sum_k w_qk v_k of vectors of the tokens k of contexts, for each query and context.
func (b *Block) Mix(weights Matrix, v Features) Features {
	b.need(weights.grid == grid{Tokens, Tokens} && v.side == Contexts, "want weights of all tokens of contexts")
	s, spans, channels := b.sides, b.spans, v.channels()
	node := s.eachContext("mix", oncuda.ToQueries, s.shapeFor(Tokens, channels), channels, false, spans, toQueries,
		func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{
				s.eachContext("mix dweights", oncuda.ToMatrix, s.shape(weights.grid), channels, true, spans, toMatrix, nil,
					dy, in[1]),
				s.eachContext("mix dvectors", oncuda.ToContexts, in[1].Shape(), channels, false, spans, toContext, nil, in[0],
					dy),
			}
		}, weights.node, v.node)
	return Features{node, Queries, Tokens, true}
}

// productsEach are Products of vectors of queries for each context.
func (b *Block) productsEach(q, k Features) Matrix {
	s, spans, channels := b.sides, b.spans, k.channels()
	g := grid{Tokens, Tokens}
	node := s.eachContext("products each", oncuda.ToMatrix, s.shape(g), channels, true, spans, toMatrix,
		func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{
				s.eachContext("products each dqueries", oncuda.ToQueries, in[0].Shape(), channels, false, spans, toQueries,
					nil, dy, in[1]),
				s.eachContext("products each dcontexts", oncuda.ToContexts, in[1].Shape(), channels, false, spans, toContext,
					nil, dy, in[0]),
			}
		}, q.node, k.node)
	return Matrix{b, node, g}
}

// Gated returns g x + (1 - g) u with g = sigmoid and u = tanh of gates (2C), g first, of vectors for each context (C).
func (b *Block) Gated(x, gates Features) Features {
	channels := x.channels()
	b.need(x.each && x.axis == Tokens && gates.each && gates.channels() == 2*channels,
		"want vectors and gates for each context")
	s, spans := b.sides, b.spans
	shape, wide := s.shapeFor(Tokens, channels), []tensor.Shape{gates.node.Shape()}
	own := func(threads int) int { return threads * 3 * channels } // of a thread: a reset gate, what it reads, a gradient
	// each copies the gates of context i and what is to be changed, and calls f for each of its vectors.
	each := func(w *work, worker, i int, gates, x []float32, f func(row int, to, g, u []float32, own [3][]float32)) {
		n := w.spans[0].size(Tokens) * channels
		first, mine := i*n, [3][]float32{}
		for k := range mine {
			mine[k] = vectorOf(w.Scratch, 3*worker+k, channels)
			clear(mine[k])
		}
		copy(w.Aux[0].F32[2*first:][:2*n], gates[2*first:])
		if to := w.Out.F32[first:][:n]; n > 0 && &to[0] != &x[first] {
			copy(to, x[first:])
		}
		w.vectorsOf(i, Tokens, func(row, _ int) {
			f(row, vectorOf(w.Out.F32, row, channels), vectorOf(w.Aux[0].F32, 2*row, channels),
				vectorOf(w.Aux[0].F32, 2*row+1, channels), mine)
		})
	}
	node := s.apply(primitive{
		kind: "gated", args: fmt.Sprint(channels), shape: shape, operands: 2, over: 1, aux: wide, scratch: own,
		inPlace: []int{0},
		on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Gated(channels) },
		sequence: func(w *work, worker, i int) {
			each(w, worker, i, w.In[1].F32, w.In[0].F32, func(_ int, to, g, u []float32, own [3][]float32) {
				vector.GRU(to, u, own[0], g, own[1])
			})
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			d := s.apply(primitive{
				kind: "gated slopes", args: fmt.Sprint(channels), shape: shape, operands: 3, over: 1, aux: wide,
				scratch: own, inPlace: []int{2},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.GatedSlopes(channels) },
				sequence: func(w *work, worker, i int) {
					each(w, worker, i, w.InAux[1][0].F32, w.In[2].F32, func(row int, to, g, u []float32, own [3][]float32) {
						clear(own[0]) // both become NaN where a gradient is
						clear(own[1])
						vector.GRUGrad(to, u, own[0], g, own[1], own[2], vectorOf(w.In[0].F32, row, channels))
					})
				},
			}, spans, in[0], out, dy)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape())}
		},
	}, spans, x.node, gates.node)
	return x.like(node)
}
