package attention

import (
	"fmt"
	"math"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GridArgs say by which angles patches of a square grid are turned.
type GridArgs struct {
	Before  int // tokens before the patches, which are not turned
	Grid    int // G: of G*G patches, row by row
	Quarter int // Q: pairs that are turned by rows, and as many by columns; a head has 4Q channels at least
	Theta   float64
	At      func(p int) float64 // what row or column p counts for
	// ColumnsFirst turns the first Q pairs by columns and the others by rows, else the other way round.
	ColumnsFirst bool
	Adjacent     bool // as in Angles
}

// GridAngles are the angles At(p) * theta^(-i/Q) of pairs i and Q+i of a patch, p its row and its column.
func GridAngles(g GridArgs) Angles {
	n := (g.Before + g.Grid*g.Grid) * 2 * g.Quarter
	a := Angles{Sin: make([]float32, n), Cos: make([]float32, n), Pairs: 2 * g.Quarter, Adjacent: g.Adjacent}
	for i := range n {
		a.Cos[i] = 1
	}
	for p := range g.Grid * g.Grid {
		axes := [2]int{p / g.Grid, p % g.Grid}
		if g.ColumnsFirst {
			axes[0], axes[1] = axes[1], axes[0]
		}
		row := (g.Before + p) * a.Pairs
		for half, axis := range axes {
			for i := range g.Quarter {
				freq := float64(float32(math.Pow(g.Theta, -float64(i)/float64(g.Quarter))))
				s, c := math.Sincos(float64(float32(g.At(axis) * freq)))
				at := row + half*g.Quarter + i
				a.Sin[at], a.Cos[at] = float32(s), float32(c)
			}
		}
	}
	return a
}

// GridBias returns a bias of attention that depends on how a key lies to its query, of the given tokens before the
// patches of a square grid of G x G: (H, L, L) for table ((2G-1)^2 [+ 3], H) (BEiT, Bao et al. 2022, after Liu et al.
// 2021). For query i and key j it has the row (yi-yj+G-1) (2G-1) + xi-xj+G-1, and the last three rows for keys, queries
// and both before the patches. Without tokens there the table has no such rows.
func GridBias(table *gorgonia.Node, grid, before int) *gorgonia.Node {
	of := gridRows(grid, before)
	l := before + grid*grid
	return op.Apply(&op.Op{
		Kind: "grid bias", Args: fmt.Sprintf("grid=%d before=%d", grid, before), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			want := (2*grid - 1) * (2*grid - 1)
			if before > 0 {
				want += 3
			}
			if err := op.Need(len(in[0]) == 2 && in[0][0] >= want, "want a table (%d, H) (got %v)", want, in[0]); err != nil {
				return nil, err
			}
			return tensor.Shape{in[0][1], l, l}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			heads := c.In[0].Dim(1)
			return c.For(heads, op.RowGrain(l*l), func(_, lo, hi int) {
				table, out := c.In[0].F32, c.Out.F32
				for h := lo; h < hi; h++ {
					for i, row := range of {
						out[h*len(of)+i] = table[int(row)*heads+h]
					}
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(gridBiasGrad(in[0].Shape()[0], grid, before), dy)}
		},
	}, table)
}

// gridBiasGrad returns the gradient of a table of n rows for dy (H, L, L). Threads share out the heads, so the order of
// sums does not depend on their number.
func gridBiasGrad(n, grid, before int) *op.Op {
	return &op.Op{
		Kind: "grid bias dtable", Args: fmt.Sprintf("n=%d grid=%d before=%d", n, grid, before), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{n, in[0][0]}, op.Need(len(in[0]) == 3, "dy must have three axes")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			heads, of := c.In[0].Dim(0), gridRows(grid, before)
			return c.For(heads, op.RowGrain(len(of)), func(_, lo, hi int) {
				dy, out := c.In[0].F32, c.Out.F32
				for h := lo; h < hi; h++ {
					for row := range n {
						out[row*heads+h] = 0
					}
					for i, row := range of {
						out[int(row)*heads+h] += dy[h*len(of)+i]
					}
				}
			})
		},
	}
}

// gridRows are the rows of a table of every query and key, (L*L).
func gridRows(grid, before int) []int32 {
	wide, l := 2*grid-1, before+grid*grid
	of := make([]int32, 0, l*l)
	for i := range l {
		for j := range l {
			row := 0
			switch p, q := i-before, j-before; {
			case p >= 0 && q >= 0:
				row = (p/grid-q/grid+grid-1)*wide + p%grid - q%grid + grid - 1
			case p < 0 && q < 0:
				row = wide*wide + 2
			case p < 0:
				row = wide * wide
			default:
				row = wide*wide + 1
			}
			of = append(of, int32(row))
		}
	}
	return of
}
