package pairs

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// equal is the part by which weights differ that are taken as equal.
const equal = 1e-5

// Softmax returns the softmax of scale x over the tokens of each context, for each query. With focal, weights that are
// not above their mean are 0 and the others have the sum 1; weights of which none is above the mean are equal and stay.
func (m Matrix) Softmax(scale float32, focal bool) Matrix {
	g := grid{Tokens, Tokens}
	m.b.need(m.grid == g, "a softmax is over the tokens of contexts, for tokens of queries")
	s, spans := m.b.sides, m.b.spans
	args := fmt.Sprint(scale, focal)
	node := s.apply(primitive{
		kind: "softmax", args: args, shape: s.shape(g), operands: 1, inPlace: []int{0},
		scratch: func(threads int) int { return threads * s[0].Len },
		on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Softmax(scale, focal) },
		sequence: func(w *work, worker, i int) {
			first, end := w.spans[0].along(Tokens, i)
			ld := w.spans[1].size(Tokens)
			to := w.Out.F32[first*ld : end*ld]
			if in := w.In[0].F32[first*ld : end*ld]; scale != 1 {
				vector.Scale(to, scale, in)
			} else {
				copy(to, in)
			}
			logs := w.Scratch[worker*s[0].Len:][:end-first]
			for j := range w.spans[1].size(Sequences) {
				at, n := w.spans[1].of(j)
				if n == 0 || len(logs) == 0 {
					continue
				}
				vector.SoftmaxRows(to[at:], ld, n, nil, 0, 1, logs)
				for r := at; focal && r < len(to); r += ld {
					focus(to[r:][:n])
				}
			}
		},
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "softmax slope", args: args, shape: s.shape(g), operands: 2, inPlace: []int{1},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.SoftmaxSlopes(scale) },
				sequence: func(w *work, _, i int) {
					first, end := w.spans[0].along(Tokens, i)
					ld := w.spans[1].size(Tokens)
					to, p := w.Out.F32[first*ld:end*ld], w.In[0].F32[first*ld:end*ld]
					if in := w.In[1].F32[first*ld : end*ld]; scale != 1 {
						vector.Scale(to, scale, in)
					} else {
						copy(to, in)
					}
					for j := range w.spans[1].size(Sequences) {
						at, n := w.spans[1].of(j)
						for r := at; r < len(to); r += ld {
							vector.SoftmaxGradRow(to[r:][:n], p[r:][:n], to[r:][:n])
						}
					}
				},
			}, spans, out, dy)}
		},
	}, spans, m.node)
	return m.with(node, g)
}

// focus sets weights that are not above their mean to 0, and the sum of the others to 1.
func focus(weights []float32) {
	mean := vector.Sum(weights) / float32(len(weights)) * (1 + equal)
	if !(vector.Max(weights) > mean) {
		return
	}
	kept := float32(0)
	for c, v := range weights {
		if v > mean {
			kept += v
		} else {
			weights[c] = 0
		}
	}
	vector.Scale(weights, 1/kept, weights)
}

// LogSumExp returns log(sum exp(a x))/a over the tokens of each sequence of queries, 0 for none.
func (m Matrix) LogSumExp(a float32) Matrix {
	g, h := m.grid, m.over(Queries)
	s, spans := m.b.sides, m.b.spans
	node := s.apply(primitive{
		kind: "log sum exp", args: fmt.Sprint(g, a), shape: s.shape(h), operands: 1,
		scratch: func(threads int) int { return threads * 2 * s[1].Size(g[1]) },
		on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.LogSumExp(oncuda.Grid(g), a) },
		sequence: func(w *work, worker, i int) {
			at, end := w.spans[0].along(Tokens, i)
			out := w.row(w.Out.F32, h, i)
			if at == end {
				clear(out)
				return
			}
			n := len(out)
			work, sum := w.Scratch[2*worker*n:][:n], w.Scratch[(2*worker+1)*n:][:n]
			copy(out, w.row(w.In[0].F32, g, at))
			for r := at + 1; r < end; r++ {
				for c, v := range w.row(w.In[0].F32, g, r) {
					if !(v <= out[c]) {
						out[c] = v
					}
				}
			}
			clear(sum)
			for r := at; r < end; r++ {
				vector.Axpby(work, a, w.row(w.In[0].F32, g, r), -a, out)
				vector.Exp(work, work)
				vector.Add(sum, sum, work)
			}
			for c, v := range sum {
				out[c] += float32(math.Log(float64(v))) / a
			}
			w.clearEmpty(out, i, h)
		},
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			shares := s.function(spans, s.plus(spans, in[0], out, g, h, 1, -1), g, &exponential, a)
			return gorgonia.Nodes{s.times(spans, shares, dy, g, h)}
		},
	}, spans, m.node)
	return m.with(node, h)
}
