package ops

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// AddPositions adds the first l rows of table (N, D), N >= l, to every sequence of l
// rows of x (B*l, D). Rows of the table beyond l have gradient zero.
func AddPositions(x, table *gorgonia.Node, l int) *gorgonia.Node {
	return apply(&op{
		kind: "add positions", args: fmt.Sprintf("l=%d", l), diff: []bool{true, true}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, table := in[0], in[1]
			if err := all(
				need(l > 0, "a sequence has at least one row (got %d)", l),
				need(len(x) == 2 && len(table) == 2 && x[1] == table[1], "want x (B*l, D) and table (N, D)"),
			); err != nil {
				return nil, err
			}
			return x.Clone(), all(
				need(x[0]%l == 0, "rows must be a multiple of %d (got %d)", l, x[0]),
				need(table[0] >= l, "table must have at least %d rows (got %d)", l, table[0]),
			)
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			return addRepeated(c, rows, cols, l), nil
		},
		grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{dy, apply(positionsGrad(l, in[1].Shape()[0]), dy)}
		},
	}, x, table)
}

// AddRow adds row (D) to every row of x (R, D).
func AddRow(x, row *gorgonia.Node) *gorgonia.Node {
	return apply(&op{
		kind: "add row", diff: []bool{true, true}, inPlace: []int{0},
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := need(len(in[0]) == 2, "want x (R, D)"); err != nil {
				return nil, err
			}
			return in[0].Clone(), checkVector(in[1], "row", in[0][1])
		},
		prepare: func(c *exec.Call) (exec.Step, error) {
			return addRepeated(c, c.In[0].Dim(0), c.In[0].Dim(1), 1), nil
		},
		grad: func(_ gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{dy, apply(columnSums(0, dy.Shape()[1]), dy)}
		},
	}, x, row)
}

// addRepeated adds the first l rows of operand 1 to every l rows of operand 0.
func addRepeated(c *exec.Call, rows, cols, l int) exec.Step {
	body := func(_, lo, hi int) {
		x, table, out := c.In[0].F32, c.In[1].F32, c.Out.F32
		for r := lo; r < hi; {
			p := r % l
			n := min(l-p, hi-r) // to the end of the sequence
			at, to := r*cols, (r+n)*cols
			kernel.Add(out[at:to], x[at:to], table[p*cols:(p+n)*cols])
			r += n
		}
	}
	return func() error {
		c.Engine.For(rows, grainRows(cols), body)
		return nil
	}
}

// positionsGrad returns the sum over the sequences of dy (B*l, D), with zeros up to
// n rows: (n, D).
func positionsGrad(l, n int) *op {
	return &op{
		kind: "add positions dtable", args: fmt.Sprintf("l=%d n=%d", l, n), diff: []bool{false},
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return tensor.Shape{n, in[0][1]}, nil },
		prepare: func(c *exec.Call) (exec.Step, error) {
			size := l * c.In[0].Dim(1)
			sequences := c.In[0].Dim(0) / l
			body := func(_, lo, hi int) {
				dy, out := c.In[0].F32, c.Out.F32[lo:hi]
				copy(out, dy[lo:hi])
				for b := 1; b < sequences; b++ {
					kernel.Add(out, out, dy[b*size+lo:b*size+hi])
				}
			}
			return func() error {
				c.Engine.For(size, max(64, elementGrain/max(1, sequences)), body)
				clear(c.Out.F32[size:])
				return nil
			}, nil
		},
	}
}
