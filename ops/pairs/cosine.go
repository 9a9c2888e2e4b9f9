package pairs

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/pairs/internal/oncuda"
	"gorgonia.org/gorgonia"
)

// Cosine returns m / max(|x| |y|, eps) of products m, the squared lengths of one side of which have the same rows and
// columns and those of the other are coarser, such as those of contexts and those of queries. The gradient for lengths
// is 0 where eps is the divisor.
func (m Matrix) Cosine(lengths, coarser Matrix, eps float32) Matrix {
	return m.cosine("cosine", lengths, coarser, eps)
}

// CosineOrZero is Cosine, but 0 without a gradient where |x| |y| is not above eps.
func (m Matrix) CosineOrZero(lengths, coarser Matrix, eps float32) Matrix {
	return m.cosine("cosine_or_zero", lengths, coarser, eps)
}

func (m Matrix) cosine(name string, lengths, coarser Matrix, eps float32) Matrix {
	m.b.need(m.grid == lengths.grid && m.grid.finest(coarser.grid) == m.grid, "lengths are of other rows or columns")
	g, h := m.grid, coarser.grid
	s, spans := m.b.sides, m.b.spans
	// of makes f(x, l, k) of lengths l and k, each of grid g or h.
	of := func(name string, f func(x, l, k float64) float64, x, l, k *gorgonia.Node, of [3]grid,
		grad func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes) *gorgonia.Node {
		return s.apply(primitive{
			kind: name, args: fmt.Sprint(of, eps), shape: s.shape(g), operands: 3, grad: grad,
			on: func(m oncuda.Sides) map[string]exec.DeviceStep {
				grids := []oncuda.Grid{oncuda.Grid(of[0]), oncuda.Grid(of[1]), oncuda.Grid(of[2])}
				return m.Elements(name, oncuda.Grid(g), grids, eps)
			},
			sequence: func(w *work, _, i int) {
				for r, end := w.spans[0].along(g[0], i); r < end; r++ {
					var in [3][]float32
					for k := range in {
						in[k] = w.rowFor(w.In[k].F32, of[k], i, r)
					}
					for c := range w.row(w.Out.F32, g, r) {
						w.row(w.Out.F32, g, r)[c] = float32(f(w.at(in[0], of[0], g, c), w.at(in[1], of[1], g, c),
							w.at(in[2], of[2], g, c)))
					}
				}
			},
		}, spans, x, l, k)
	}
	least := float64(eps)
	divided := func(x, l, k float64) float64 {
		switch n := math.Sqrt(l * k); {
		case name != "cosine" && n <= least:
			return 0
		case !(n < least):
			return x / n
		}
		return x / least
	}
	halved := func(x, l, k float64) float64 {
		if math.Sqrt(l*k) > least {
			return -x / (2 * l)
		}
		return 0
	}
	node := of(name, divided, m.node, lengths.node, coarser.node, [3]grid{g, g, h},
		func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			along := s.times(spans, out, dy, g, g)
			return gorgonia.Nodes{
				of(name, divided, dy, in[1], in[2], [3]grid{g, g, h}, nil),
				of("cosine_slope", halved, along, in[1], in[2], [3]grid{g, g, h}, nil),
				s.sum(spans, of("cosine_slope", halved, along, in[2], in[1], [3]grid{g, h, g}, nil), g, h, false),
			}
		})
	return m.with(node, g)
}

// at returns the value of a row of grid h that column c of one of grid g has.
func (w *work) at(row []float32, h, g grid, c int) float64 {
	if h[1] == g[1] {
		return float64(row[c])
	}
	return float64(row[0])
}
