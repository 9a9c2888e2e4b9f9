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

// Softmax returns the softmax of scale x over the tokens of each sequence of a side.
func (m Matrix) Softmax(side SideOf, scale float32) Matrix {
	if side == Queries {
		return m.columnSoftmax(scale)
	}
	return m.softmax(scale, nil, allWeights)
}

// FocalSoftmax is Softmax over contexts, where weights that are not above their mean are 0 and the others have the sum
// 1; with weighted the mean is weighted by the square roots of the weights. Weights that are all equal stay.
func (m Matrix) FocalSoftmax(scale float32, weighted bool) Matrix {
	if weighted {
		return m.softmax(scale, nil, aboveWeightedMean)
	}
	return m.softmax(scale, nil, aboveMean)
}

// The weights that a softmax keeps; the numbers are those of pairs.cu.
const (
	allWeights = iota
	aboveMean
	aboveWeightedMean
)

// SoftmaxAbove is Softmax over those tokens of contexts whose x is above a bound, one value; the weights of all others
// are 0. There is no gradient for the bound.
func (m Matrix) SoftmaxAbove(scale float32, bound Matrix) Matrix {
	m.b.need(bound.grid == grid{One, One}, "the bound of a softmax is one value")
	return m.softmax(scale, bound.node, allWeights)
}

func (m Matrix) softmax(scale float32, bound *gorgonia.Node, kept int) Matrix {
	g := grid{Tokens, Tokens}
	m.b.need(m.grid == g, "a softmax is over tokens, for tokens")
	s, spans := m.b.sides, m.b.spans
	args := fmt.Sprint(scale, kept)
	in := gorgonia.Nodes{m.node}
	if bound != nil {
		in = append(in, bound)
	}
	node := s.apply(primitive{
		kind: "softmax", args: args, shape: s.shape(g), operands: len(in), fixed: len(in) - 1, inPlace: []int{0},
		scratch: func(threads int) int { return threads * s[0].Len },
		on:      func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Softmax(scale, bound != nil, kept) },
		sequence: func(w *work, worker, i int) {
			first, end := w.spans[0].along(Tokens, i)
			ld := w.spans[1].size(Tokens)
			to := w.Out.F32[first*ld : end*ld]
			if in := w.In[0].F32[first*ld : end*ld]; bound != nil {
				w.eachRow(to, in, func(to, in []float32) { above(to, in, scale, w.In[1].F32[0]) })
				return
			} else if scale != 1 {
				vector.Scale(to, scale, in)
			} else if len(in) > 0 && &in[0] != &to[0] {
				copy(to, in)
			}
			logs := w.Scratch[worker*s[0].Len:][:end-first]
			for j := range w.spans[1].size(Sequences) {
				at, n := w.spans[1].of(j)
				if n == 0 || len(logs) == 0 {
					continue
				}
				vector.SoftmaxRows(to[at:], ld, n, nil, 0, 1, logs)
				for r := at; kept != allWeights && r < len(to); r += ld {
					focus(to[r:][:n], kept == aboveWeightedMean)
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
					} else if len(in) > 0 && &in[0] != &to[0] {
						copy(to, in)
					}
					for j := range w.spans[1].size(Sequences) {
						if at, n := w.spans[1].of(j); n > 0 && end > first {
							vector.SoftmaxGradRows(to[at:], p[at:], p[at:], ld, end-first, n)
						}
					}
				},
			}, spans, out, dy)}
		},
	}, spans, in...)
	return m.with(node, g)
}

// eachRow calls f with the values of each context in rows of two matrices.
func (w *work) eachRow(x, y []float32, f func(x, y []float32)) {
	ld := w.spans[1].size(Tokens)
	for r := 0; r < len(x); r += ld {
		for j := range w.spans[1].size(Sequences) {
			if at, n := w.spans[1].of(j); n > 0 {
				f(x[r+at:][:n], y[r+at:][:n])
			}
		}
	}
}

// above sets weights to the softmax of scale x over the x that are above a bound, and the others to 0. They may be x.
func above(weights, x []float32, scale, bound float32) {
	top, sum := vector.Max(x), float32(0)
	for c, v := range x {
		weights[c] = 0
		if !(v <= bound) {
			weights[c] = float32(math.Exp(float64(scale * (v - top))))
			sum += weights[c]
		}
	}
	if sum != 0 {
		vector.Scale(weights, 1/sum, weights)
	}
}

// columnSoftmax is Softmax over queries.
func (m Matrix) columnSoftmax(scale float32) Matrix {
	g, width := m.grid, m.b.sides[1].Size(m.grid[1])
	m.over(Queries)
	s, spans := m.b.sides, m.b.spans
	args := fmt.Sprint(g, scale)
	rows := func(threads int) int { return threads * 2 * width }
	node := s.apply(primitive{
		kind: "column softmax", args: args, shape: s.shape(g), operands: 1, inPlace: []int{0}, scratch: rows,
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.ColumnSoftmax(oncuda.Grid(g), scale) },
		sequence: func(w *work, worker, i int) {
			at, end := w.spans[0].along(Tokens, i)
			n := w.spans[1].size(g[1])
			low, sum := w.Scratch[2*worker*width:][:n], w.Scratch[(2*worker+1)*width:][:n]
			to := w.Out.F32[at*n : end*n]
			vector.Fill(low, float32(math.Inf(1)))
			vector.Scale(to, -scale, w.In[0].F32[at*n:end*n])
			for r := 0; r < len(to); r += n {
				vector.MinPlus(low, to[r:][:n], 0)
			}
			clear(sum)
			for r := 0; r < len(to); r += n {
				row := to[r:][:n]
				vector.Sub(row, low, row)
				vector.Exp(row, row)
				vector.Add(sum, sum, row)
			}
			for c, v := range sum {
				sum[c] = 1 / v
			}
			for r := 0; r < len(to); r += n {
				vector.Mul(to[r:][:n], to[r:][:n], sum)
			}
		},
		grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "column softmax slope", args: args, shape: s.shape(g), operands: 2, inPlace: []int{1}, scratch: rows,
				on: func(m oncuda.Sides) map[string]exec.DeviceStep {
					return m.ColumnSoftmaxSlopes(oncuda.Grid(g), scale)
				},
				sequence: func(w *work, worker, i int) {
					at, end := w.spans[0].along(Tokens, i)
					n := w.spans[1].size(g[1])
					row, sum := w.Scratch[2*worker*width:][:n], w.Scratch[(2*worker+1)*width:][:n]
					clear(sum)
					for r := at; r < end; r++ {
						vector.Mul(row, w.row(w.In[0].F32, g, r), w.row(w.In[1].F32, g, r))
						vector.Add(sum, sum, row)
					}
					for r := at; r < end; r++ {
						to := w.row(w.Out.F32, g, r)
						vector.Axpby(to, scale, w.row(w.In[1].F32, g, r), -scale, sum)
						vector.Mul(to, to, w.row(w.In[0].F32, g, r))
					}
				},
			}, spans, out, dy)}
		},
	}, spans, m.node)
	return m.with(node, g)
}

// focus sets weights that are not above their mean to 0, and the sum of the others to 1. A weighted mean is
// sum w sqrt(w) / sum sqrt(w).
func focus(weights []float32, weighted bool) {
	mean := vector.Sum(weights) / float32(len(weights))
	if !(vector.Max(weights) > mean*(1+equal)) {
		return
	}
	if weighted {
		sum, roots := 0., 0.
		for _, v := range weights {
			root := math.Sqrt(float64(v))
			sum, roots = sum+float64(v)*root, roots+root
		}
		mean = float32(sum / roots)
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

// LogSumExp returns log(sum exp(a x))/a over the tokens of each sequence of a side, 0 for none.
func (m Matrix) LogSumExp(side SideOf, a float32) Matrix { return m.logSumExp(side, a, false) }

// LogMeanExp is LogSumExp with the mean in the place of the sum.
func (m Matrix) LogMeanExp(side SideOf, a float32) Matrix { return m.logSumExp(side, a, true) }

func (m Matrix) logSumExp(side SideOf, a float32, mean bool) Matrix {
	g, h := m.grid, m.over(side)
	s, spans := m.b.sides, m.b.spans
	sequence := func(w *work, worker, i int) { // over queries
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
		if mean {
			vector.Scale(sum, 1/float32(end-at), sum)
		}
		for c, v := range sum {
			out[c] += float32(math.Log(float64(v))) / a
		}
		w.clearEmpty(out, i, h)
	}
	if side == Contexts {
		sequence = func(w *work, worker, i int) {
			for r, end := w.spans[0].along(g[0], i); r < end; r++ {
				row, out := w.row(w.In[0].F32, g, r), w.row(w.Out.F32, h, r)
				for j := range out {
					at, n := w.spans[1].of(j)
					if out[j] = 0; n == 0 {
						continue
					}
					work := w.Scratch[worker*s[1].Len:][:n]
					vector.Scale(work, a, row[at:][:n])
					v := float64(vector.LogSumExp(work))
					if mean {
						v -= math.Log(float64(n))
					}
					out[j] = float32(v) / a
				}
				w.clearEmpty(out, i, h)
			}
		}
	}
	node := s.apply(primitive{
		kind: "log sum exp", args: fmt.Sprint(g, side, a, mean), shape: s.shape(h), operands: 1,
		scratch: func(threads int) int { return threads * 2 * max(s[1].Size(g[1]), s[1].Len) },
		on: func(m oncuda.Sides) map[string]exec.DeviceStep {
			return m.LogSumExp(oncuda.Grid(g), oncuda.Grid(h), a, mean)
		},
		sequence: sequence,
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			shares := s.function(spans, s.plus(spans, in[0], out, g, h, 1, -1), g, &exponential, a)
			if mean {
				return gorgonia.Nodes{s.times(spans, shares, s.spread(spans, dy, h, g, true), g, g)}
			}
			return gorgonia.Nodes{s.times(spans, shares, dy, g, h)}
		},
	}, spans, m.node)
	return m.with(node, h)
}
