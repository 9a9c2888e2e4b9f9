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

// Normalise returns a x / (|x| + eps) with the norm of each column over the tokens of each sequence of queries. The
// gradient through a norm of 0 is 0.
func (m Matrix) Normalise(a, eps float32) Matrix {
	g, h := m.grid, m.over(Queries)
	s, spans := m.b.sides, m.b.spans
	width := 2 * s[1].Size(g[1]) // of float64
	args := fmt.Sprint(g, a, eps)
	node := s.apply(primitive{
		kind: "normalise", args: args, shape: s.shape(g), operands: 1, aux: []tensor.Shape{s.shape(h)},
		on: func(m oncuda.Sides) map[string]exec.DeviceStep { return m.Normalise(oncuda.Grid(g), a, eps) },
		sequence: func(w *work, worker, i int) {
			at, end := w.spans[0].along(Tokens, i)
			norms, x := w.row(w.Aux[0].F32, h, i), w.In[0].F32
			factors := w.Scratch[worker*width:][:len(norms)]
			clear(norms)
			for r := at; r < end; r++ {
				for c, v := range w.row(x, g, r) {
					norms[c] += v * v
				}
			}
			for c, v := range norms {
				norms[c] = float32(math.Sqrt(float64(v)))
				factors[c] = a / (norms[c] + eps)
			}
			for r := at; r < end; r++ {
				vector.Mul(w.row(w.Out.F32, g, r), w.row(x, g, r), factors)
			}
		},
		scratch: func(threads int) int { return threads * width },
		grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.apply(primitive{
				kind: "normalise slope", args: args, shape: s.shape(g), operands: 3, inPlace: []int{2},
				on: func(m oncuda.Sides) map[string]exec.DeviceStep {
					return m.NormaliseSlopes(oncuda.Grid(g), a, eps)
				},
				// dx = a/(n+eps) (dy - x (x.dy) / (n (n+eps))), whose terms cancel where there are few tokens
				sequence: func(w *work, worker, i int) {
					at, end := w.spans[0].along(Tokens, i)
					norms, x, dy := w.row(w.InAux[1][0].F32, h, i), w.In[0].F32, w.In[2].F32
					along := vector.Doubles(w.Scratch[worker*2*width:][:2*width])[:2*len(norms)]
					along, squares := along[:len(norms)], along[len(norms):]
					clear(along)
					clear(squares)
					for r := at; r < end; r++ {
						slopes := w.row(dy, g, r)
						for c, v := range w.row(x, g, r) {
							along[c] += float64(v) * float64(slopes[c])
							squares[c] += float64(v) * float64(v)
						}
					}
					for c, v := range squares {
						if v > 0 {
							along[c] /= v + math.Sqrt(v)*float64(eps)
						}
					}
					for r := at; r < end; r++ {
						slopes, to := w.row(dy, g, r), w.row(w.Out.F32, g, r)
						for c, v := range w.row(x, g, r) {
							to[c] = a / (norms[c] + eps) * float32(float64(slopes[c])-float64(v)*along[c])
						}
					}
				},
				scratch: func(threads int) int { return threads * 2 * width },
			}, spans, in[0], out, dy)}
		},
	}, spans, m.node)
	return m.with(node, g)
}
