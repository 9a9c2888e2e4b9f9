package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Embed returns the rows of table (V, D) that ids (R) int32 name: (R, D). An id
// outside [0, V) fails the run. The gradient of the table is dense.
func Embed(table, ids *gorgonia.Node) *gorgonia.Node {
	return op.Apply((&gather{kind: "embed", block: 1, still: -1}).forward(), table, ids)
}

// EmbedPadded is Embed with a row of the table, pad, that no gradient flows to, as that of
// padding_idx in PyTorch.
func EmbedPadded(table, ids *gorgonia.Node, pad int) *gorgonia.Node {
	return op.Apply((&gather{kind: "embed", block: 1, still: pad}).forward(), table, ids)
}

// GatherRows returns, one after the other, the blocks of block rows of x (N*block, D)
// that index (R) int32 names: (R*block, D). An index outside [0, N) fails the run.
func GatherRows(x, index *gorgonia.Node, block int) *gorgonia.Node {
	return op.Apply((&gather{kind: "gather rows", block: block, still: -1}).forward(), x, index)
}

// gather describes an op that copies blocks of rows by index.
type gather struct {
	kind  string
	block int
	still int // block without a gradient; -1: none
}

func (g *gather) forward() *op.Op {
	return &op.Op{
		Kind: g.kind, Args: fmt.Sprintf("block=%d still=%d", g.block, g.still), Diff: []bool{true, false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, index := in[0], in[1]
			if err := op.All(
				op.Need(g.block > 0, "a block has at least one row (got %d)", g.block),
				op.Need(len(x) == 2 && len(index) == 1, "want a matrix and an index vector"),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{index[0] * g.block, x[1]},
				op.Need(x[0]%g.block == 0, "rows must be a multiple of %d (got %d)", g.block, x[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			n, width := c.In[0].Dim(0)/g.block, g.block*c.In[0].Dim(1)
			body := func(_, lo, hi int) {
				x, index, out := c.In[0].F32, c.In[1].I32, c.Out.F32
				for r := lo; r < hi; r++ {
					at := int(index[r]) * width
					copy(out[r*width:(r+1)*width], x[at:at+width])
				}
			}
			return func() error {
				if err := g.check(c.In[1].I32, n); err != nil {
					return err
				}
				c.Engine.For(c.In[1].Len(), op.RowGrain(width), body)
				return nil
			}, nil
		},
		On: oncuda.Gather(g.block),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(g.backward(in[0].Shape()[0]), in[1], dy), nil}
		},
	}
}

// check fails for an index outside [0, n), which would read another node's memory.
func (g *gather) check(index []int32, n int) error {
	for r, i := range index {
		if i < 0 || int(i) >= n {
			return fmt.Errorf("ops: %s: index %d at position %d: want [0, %d)", g.kind, i, r, n)
		}
	}
	return nil
}

// backward returns dx (rows, D) for the index and dy. Threads share out the rows of
// dx and each adds what belongs to its rows in the order of the index: no two write
// one place, and the sums do not depend on their number.
func (g *gather) backward(rows int) *op.Op {
	return &op.Op{
		Kind: g.kind + " dx", Args: fmt.Sprintf("block=%d still=%d rows=%d", g.block, g.still, rows),
		Diff: []bool{false, false}, Accumulates: true,
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{rows, in[1][1]}, op.Need(in[0][0]*g.block == in[1][0], "index and dy do not fit")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			n, width := rows/g.block, g.block*c.In[1].Dim(1)
			body := func(_, lo, hi int) {
				index, dy, out := c.In[0].I32, c.In[1].F32, c.Out.F32
				if !c.Accumulate {
					clear(out[lo*width : hi*width])
				}
				for r, i := range index {
					if i := int(i); i >= lo && i < hi && i != g.still {
						row := out[i*width : (i+1)*width]
						vector.Add(row, row, dy[r*width:(r+1)*width])
					}
				}
			}
			return func() error {
				if err := g.check(c.In[0].I32, n); err != nil {
					return err
				}
				c.Engine.For(n, op.RowGrain(width), body)
				return nil
			}, nil
		},
		On: oncuda.GatherGrad(g.block, g.still),
	}
}
