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

// AddPositions adds the first l rows of table (N, D), N >= l, to every sequence of l
// rows of x (B*l, D). Rows of the table beyond l have gradient zero.
func AddPositions(x, table *gorgonia.Node, l int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "add positions", Args: fmt.Sprintf("l=%d", l), Diff: []bool{true, true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, table := in[0], in[1]
			if err := op.All(
				op.Need(l > 0, "a sequence has at least one row (got %d)", l),
				op.Need(len(x) == 2 && len(table) == 2 && x[1] == table[1], "want x (B*l, D) and table (N, D)"),
			); err != nil {
				return nil, err
			}
			return x.Clone(), op.All(
				op.Need(x[0]%l == 0, "rows must be a multiple of %d (got %d)", l, x[0]),
				op.Need(table[0] >= l, "table must have at least %d rows (got %d)", l, table[0]),
			)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return addRepeated(c, rows, cols, l), nil
		},
		On: oncuda.AddRepeated(l),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{dy, op.Apply(positionsGrad(l, in[1].Shape()[0]), dy)}
		},
	}, x, table)
}

// addRepeated adds the first l rows of operand 1 to every l rows of operand 0.
func addRepeated(c *exec.Call, rows, cols, l int) exec.Step {
	body := func(_, lo, hi int) {
		x, table, out := c.In[0].F32, c.In[1].F32, c.Out.F32
		for r := lo; r < hi; {
			p := r % l
			n := min(l-p, hi-r) // to the end of the sequence
			at, to := r*cols, (r+n)*cols
			vector.Add(out[at:to], x[at:to], table[p*cols:(p+n)*cols])
			r += n
		}
	}
	return func() error {
		c.Engine.For(rows, op.RowGrain(cols), body)
		return nil
	}
}

// positionsGrad returns the sum over the sequences of dy (B*l, D), with zeros up to
// n rows: (n, D).
func positionsGrad(l, n int) *op.Op {
	return &op.Op{
		Kind: "add positions dtable", Args: fmt.Sprintf("l=%d n=%d", l, n), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{n, in[0][1]}, nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			size := l * c.In[0].Dim(1)
			sequences := c.In[0].Dim(0) / l
			body := func(_, lo, hi int) {
				dy, out := c.In[0].F32, c.Out.F32[lo:hi]
				copy(out, dy[lo:hi])
				for b := 1; b < sequences; b++ {
					vector.Add(out, out, dy[b*size+lo:b*size+hi])
				}
			}
			return func() error {
				c.Engine.For(size, max(64, op.ElementGrain/max(1, sequences)), body)
				clear(c.Out.F32[size:])
				return nil
			}, nil
		},
		On: oncuda.SumSequences(l, l),
	}
}
