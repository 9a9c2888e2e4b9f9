package layout

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/layout/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// StridedRows returns the count rows start, start+stride, ... of x (R, D): (count, D).
// With stride 1 it is a slice; with stride L and start 0, the first token of every
// sequence. All rows of x are x itself.
func StridedRows(x *gorgonia.Node, start, stride, count int) *gorgonia.Node {
	if x != nil && start == 0 && stride == 1 && len(x.Shape()) == 2 && count == x.Shape()[0] {
		return x
	}
	return op.Apply(&op.Op{
		Kind: "strided rows", Args: fmt.Sprintf("start=%d stride=%d count=%d", start, stride, count),
		Diff: []bool{true}, On: strided(start, stride).Take(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x := in[0]
			if err := op.All(
				op.Need(len(x) == 2, "want x (R, D)"),
				op.Need(start >= 0 && stride > 0 && count > 0,
					"start, stride and count must be at least 0, 1 and 1 (got %d, %d, %d)", start, stride, count),
			); err != nil {
				return nil, err
			}
			last := start + (count-1)*stride
			return tensor.Shape{count, x[1]},
				op.Need(last < x[0], "row %d is the last one asked for, x has %d", last, x[0])
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols := c.In[0].Dim(1)
			return c.For(count, op.RowGrain(cols), func(_, lo, hi int) {
				x, out := c.In[0].F32, c.Out.F32
				if stride == 1 {
					copy(out[lo*cols:hi*cols], x[(start+lo)*cols:(start+hi)*cols])
					return
				}
				for i := lo; i < hi; i++ {
					at := (start + i*stride) * cols
					copy(out[i*cols:(i+1)*cols], x[at:at+cols])
				}
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(spreadRows(in[0].Shape()[0], start, stride, count), dy)}
		},
	}, x)
}

// spreadRows puts the rows of dy at start, start+stride, ... of zeros (rows, D).
func spreadRows(rows, start, stride, count int) *op.Op {
	return &op.Op{
		Kind: "strided rows dx", Args: fmt.Sprintf("rows=%d start=%d stride=%d count=%d", rows, start, stride, count),
		Diff: []bool{false}, Accumulates: true, On: strided(start, stride).Put(),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{rows, in[0][1]}, op.Need(in[0][0] == count, "dy must have %d rows", count)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			cols := c.In[0].Dim(1)
			body := func(_, lo, hi int) {
				dy, out := c.In[0].F32, c.Out.F32
				for r := lo; r < hi; r++ {
					row := out[r*cols : (r+1)*cols]
					if i := (r - start) / stride; r >= start && (r-start)%stride == 0 && i < count {
						copy(row, dy[i*cols:(i+1)*cols])
					} else {
						clear(row)
					}
				}
			}
			if c.Accumulate {
				return c.For(count, op.RowGrain(cols), func(_, lo, hi int) {
					dy, out := c.In[0].F32, c.Out.F32
					for i := lo; i < hi; i++ {
						row := out[(start+i*stride)*cols:][:cols]
						vector.Add(row, row, dy[i*cols:(i+1)*cols])
					}
				})
			}
			return func() error {
				c.Engine.For(rows, op.RowGrain(cols), body)
				return nil
			}, nil
		},
	}
}

// strided are the rows start, start+stride, ... as the steps for the CUDA device know them.
func strided(start, stride int) oncuda.Place { return oncuda.Place{First: start, T: stride, Kept: 1} }
