package pairs

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// nodesOf calls f with where the vectors of a pair of context i and each sequence begin: that of the sequence among
// those of sequences, the first of its n tokens among those of tokens, and the first of both among joined ones.
func (w *work) nodesOf(i int, f func(whole, token, node, n int)) {
	tokens, sequences := w.spans[0].size(Tokens), w.spans[0].size(Sequences)
	for j := range sequences {
		at, n := w.spans[0].of(j)
		f(i*sequences+j, i*tokens+at, i*(tokens+sequences)+at+j, n)
	}
}

// Join returns vectors of sequences of queries for each context with those of their tokens behind each.
func (b *Block) Join(wholes, tokens Features) Features {
	b.need(wholes.each && tokens.each && wholes.axis == Sequences && tokens.axis == Tokens &&
		wholes.channels() == tokens.channels(), "want vectors of sequences and of tokens for each context")
	s, spans := b.sides, b.spans
	node := s.join(spans, wholes.node, tokens.node, func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{s.part(spans, Sequences, dy), s.part(spans, Tokens, dy)}
	})
	return Features{node, Queries, joined, true}
}

// First returns the vectors of sequences of joined ones.
func (b *Block) First(x Features) Features {
	b.need(x.axis == joined, "want joined vectors")
	return Features{b.sides.part(b.spans, Sequences, x.node), Queries, Sequences, true}
}

// join is Join; vectors of tokens that are nil are 0.
func (s sides) join(spans [2]*gorgonia.Node, wholes, tokens *gorgonia.Node,
	grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes) *gorgonia.Node {
	in, channels := gorgonia.Nodes{wholes}, wholes.Shape()[1]
	if tokens != nil {
		in = append(in, tokens)
	}
	return s.apply(primitive{
		kind: "join", shape: s.shapeFor(joined, channels), operands: len(in), over: 1, grad: grad,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Join(tokens != nil, channels) },
		sequence: func(w *work, _, i int) {
			w.nodesOf(i, func(whole, token, node, n int) {
				to := w.Out.F32[node*channels:][:(n+1)*channels]
				copy(to[:channels], w.In[0].F32[whole*channels:])
				if to = to[channels:]; tokens == nil {
					clear(to)
				} else {
					copy(to, w.In[1].F32[token*channels:])
				}
			})
		},
	}, spans, in...)
}

// part returns the vectors of sequences, or of tokens, of joined ones.
func (s sides) part(spans [2]*gorgonia.Node, axis Axis, x *gorgonia.Node) *gorgonia.Node {
	channels := x.Shape()[1]
	p := primitive{
		kind: "part", args: fmt.Sprint(axis), shape: s.shapeFor(axis, channels), operands: 1, over: 1,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Part(axis, channels) },
		sequence: func(w *work, _, i int) {
			w.nodesOf(i, func(whole, token, node, n int) {
				if from := w.In[0].F32[node*channels:]; axis == Sequences {
					copy(vectorOf(w.Out.F32, whole, channels), from)
				} else {
					copy(w.Out.F32[token*channels:][:n*channels], from[channels:])
				}
			})
		},
	}
	if axis == Sequences {
		p.grad = func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.join(spans, dy, nil, nil)}
		}
	}
	return s.apply(p, spans, x)
}

// Attend returns sum_j softmax_j(q_i.k_j) v_j over the joined vectors j of a pair, for each of those or, with vectors
// of sequences q, for these alone. Products are in float32.
func (b *Block) Attend(q, k, v Features) Features {
	b.need(q.each && k.axis == joined && v.axis == joined && (q.axis == joined || q.axis == Sequences) &&
		q.channels() == k.channels(), "want joined vectors, or queries of sequences")
	s, spans := b.sides, b.spans
	wide, inner, channels := s[0].Len+1, q.channels(), v.channels()
	rows := q.node.Shape()[0]
	in, same := gorgonia.Nodes{q.node, k.node, v.node}, k.node == v.node
	if same {
		in = in[:2]
	}
	last := len(in) - 1
	weights, args := []tensor.Shape{{rows, wide}}, fmt.Sprint(q)
	flops := 2 * int64(rows) * int64(wide) * int64(inner+channels)
	beta := float32(2 - last) // of the second gradient of what is both
	room := wide * (wide + max(inner, channels))
	// pair calls f with the n queries of a pair, the first of which is row, and the m vectors that they attend to.
	pair := func(w *work, i int, f func(row, n, node, m int)) {
		w.nodesOf(i, func(whole, _, node, n int) {
			if q.axis == Sequences {
				f(whole, 1, node, n+1)
			} else {
				f(node, n+1, node, n+1)
			}
		})
	}
	out := s.apply(primitive{
		kind: "attend", args: args, shape: tensor.Shape{rows, channels}, operands: len(in), over: 1, aux: weights,
		flops: flops,
		on:    func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Attend(q.axis, last) },
		sequence: func(w *work, _, i int) {
			pair(w, i, func(row, n, node, m int) {
				p := w.Aux[0].F32[row*wide:][:n*m]
				w.Engine.GemmSerial(false, true, n, m, inner, 1, w.In[0].F32[row*inner:], inner, w.In[1].F32[node*inner:], inner,
					0, p, m)
				for r := range n {
					vector.Softmax(p[r*m:][:m], p[r*m:][:m])
				}
				w.Engine.GemmSerial(false, false, n, channels, m, 1, p, m, w.In[last].F32[node*channels:], channels, 0,
					w.Out.F32[row*channels:], channels)
			})
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			d := s.apply(primitive{ // of q, then of k and v, or of what is both
				kind: "attend slopes", args: args, shape: in[0].Shape(), operands: len(in) + 2, over: 1, flops: 2 * flops,
				aux:     []tensor.Shape{in[1].Shape(), in[last].Shape()}[:last],
				scratch: func(threads int) int { return threads * room },
				on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.AttendSlopes(q.axis, last) },
				sequence: func(w *work, worker, i int) {
					pair(w, i, func(row, n, node, m int) {
						own := w.Scratch[worker*room:][:room]
						p, d, near := w.InAux[last+1][0].F32[row*wide:][:n*m], own[:n*m], own[wide*wide:]
						q, k, v := w.In[0].F32[row*inner:], w.In[1].F32[node*inner:], w.In[last].F32[node*channels:]
						dy, e := w.In[last+2].F32[row*channels:], w.Engine
						fromFirst(near, v, m, channels)
						e.GemmSerial(false, true, n, m, channels, 1, dy, channels, near, channels, 0, d, m)
						for r := range n {
							vector.SoftmaxGradRow(d[r*m:][:m], p[r*m:][:m], d[r*m:][:m])
						}
						if !same {
							fromFirst(near, k, m, inner)
						}
						e.GemmSerial(false, false, n, inner, m, 1, d, m, near, inner, 0, w.Out.F32[row*inner:], inner)
						e.GemmSerial(true, false, m, inner, n, 1, d, m, q, inner, 0, w.Aux[0].F32[node*inner:], inner)
						e.GemmSerial(true, false, m, channels, n, 1, p, m, dy, channels, beta,
							w.Aux[last-1].F32[node*channels:], channels)
					})
				},
			}, spans, append(append(gorgonia.Nodes{}, in...), out, dy)...)
			grads := gorgonia.Nodes{d}
			for k, x := range in[1:] {
				grads = append(grads, op.Take(d, k, x.Shape()))
			}
			return grads
		},
	}, spans, in...)
	return q.like(out)
}

// fromFirst sets n vectors less the first of them. Gradients of a softmax do not see what vectors have in common, only
// its rounding.
func fromFirst(to, x []float32, n, channels int) {
	for r := range n {
		vector.Sub(vectorOf(to, r, channels), vectorOf(x, r, channels), x[:channels])
	}
}

// Gather returns sum_i a_i x_i / (sum_i a_i + eps) of the joined vectors of each pair, where a_i = sigmoid of their
// logits, vectors of one channel.
func (b *Block) Gather(x, logits Features, eps float32) Features {
	b.need(x.axis == joined && logits.axis == joined && logits.channels() == 1, "want joined vectors with a logit each")
	s, spans, channels := b.sides, b.spans, x.channels()
	rows, out := x.node.Shape()[0], s.shapeFor(Sequences, channels)
	gates := []tensor.Shape{{rows}, {out[0]}} // and their sums
	args := fmt.Sprint(eps)
	node := s.apply(primitive{
		kind: "gather", args: args, shape: out, operands: 2, over: 1, aux: gates,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Gather(channels, eps) },
		sequence: func(w *work, _, i int) {
			w.nodesOf(i, func(whole, _, node, n int) {
				a, to := w.Aux[0].F32[node:][:n+1], vectorOf(w.Out.F32, whole, channels)
				for r, v := range w.In[1].F32[node:][:n+1] {
					a[r] = sigmoid(v)
				}
				sum := vector.Sum(a) + eps
				w.Aux[1].F32[whole] = sum
				clear(to)
				for r, v := range a {
					vector.Axpy(to, v/sum, vectorOf(w.In[0].F32, node+r, channels))
				}
			})
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			d := s.apply(primitive{ // of the vectors, then of the logits
				kind: "gather slopes", args: args, shape: in[0].Shape(), operands: 3, over: 1, aux: []tensor.Shape{in[1].Shape()},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.GatherSlopes(channels) },
				sequence: func(w *work, _, i int) {
					w.nodesOf(i, func(whole, _, node, n int) {
						a, dlogits := w.InAux[1][0].F32[node:][:n+1], w.Aux[0].F32[node:][:n+1]
						sum, dy := w.InAux[1][1].F32[whole], vectorOf(w.In[2].F32, whole, channels)
						for r, v := range a {
							dlogits[r] = vector.Dot(dy, vectorOf(w.In[0].F32, node+r, channels))
							vector.Scale(vectorOf(w.Out.F32, node+r, channels), v/sum, dy)
						}
						mean := vector.Dot(a, dlogits) / sum
						for r, v := range a {
							dlogits[r] = (dlogits[r] - mean) / sum * v * (1 - v)
						}
					})
				},
			}, spans, in[0], out, dy)
			return gorgonia.Nodes{d, op.Take(d, 0, in[1].Shape())}
		},
	}, spans, x.node, logits.node)
	return Features{node, Queries, Sequences, true}
}
