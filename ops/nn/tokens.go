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

// RepeatRows returns n copies of x (K, D) one after the other: (n*K, D).
func RepeatRows(x *gorgonia.Node, n int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "repeat rows", Args: fmt.Sprintf("n=%d", n), Diff: []bool{true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2 && n > 0, "want x (K, D) and at least one copy (got %v and %d)", in[0],
				n); err != nil {
				return nil, err
			}
			return tensor.Shape{n * in[0][0], in[0][1]}, nil
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			size := c.In[0].Len()
			return c.For(n, op.RowGrain(size), func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					copy(c.Out.F32[i*size:(i+1)*size], c.In[0].F32)
				}
			})
		},
		On: oncuda.Repeat(),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			k := in[0].Shape()[0]
			return gorgonia.Nodes{op.Apply(positionsGrad(k, k), dy)}
		},
	}, x)
}

// MeanTokens returns the mean of the rows of each sequence of l rows of x (B*l, D), without
// the first skip ones and without those from lengths (B) int32 on, nil for none: (B, D). The
// mean of no rows is 0.
func MeanTokens(x, lengths *gorgonia.Node, l, skip int) *gorgonia.Node {
	m := meanTokens{l: l, skip: skip, lengths: lengths != nil}
	in := []*gorgonia.Node{x}
	if m.lengths {
		in = append(in, lengths)
	}
	return op.Apply(m.forward(), in...)
}

// meanTokens describes the op. lengths is the last operand, if there is one.
type meanTokens struct {
	l, skip int
	lengths bool
}

func (m meanTokens) args() string {
	return fmt.Sprintf("l=%d skip=%d lengths=%t", m.l, m.skip, m.lengths)
}

// rows returns the end of the rows of sequence b that count.
func (m meanTokens) end(c *exec.Call, b int) int {
	if !m.lengths {
		return m.l
	}
	return int(c.In[1].I32[b])
}

func (m meanTokens) check(in []tensor.Shape, rows int) error {
	if !m.lengths {
		return nil
	}
	return op.Need(len(in[1]) == 1 && in[1][0] == rows, "lengths must have shape (%d) (got %v)", rows, in[1])
}

func (m meanTokens) forward() *op.Op {
	o := &op.Op{Kind: "mean tokens", Args: m.args(), Diff: []bool{true}}
	if m.lengths {
		o.Diff = append(o.Diff, false)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		x := in[0]
		if err := op.All(
			op.Need(m.l > 0 && m.skip >= 0 && m.skip < m.l,
				"want sequences with a row that is not skipped (got %d rows, %d skipped)", m.l, m.skip),
			op.Need(len(x) == 2, "want x (B*l, D)"),
		); err != nil {
			return nil, err
		}
		if err := op.Need(x[0]%m.l == 0, "rows must be a multiple of %d (got %d)", m.l, x[0]); err != nil {
			return nil, err
		}
		return tensor.Shape{x[0] / m.l, x[1]}, m.check(in, x[0]/m.l)
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		cols := c.Out.Dim(1)
		body := func(_, lo, hi int) {
			for b := lo; b < hi; b++ {
				out, end := c.Out.F32[b*cols:][:cols], m.end(c, b)
				clear(out)
				if end > m.skip {
					vector.SumRows(out, c.In[0].F32[(b*m.l+m.skip)*cols:(b*m.l+end)*cols])
					vector.Scale(out, 1/float32(end-m.skip), out)
				}
			}
		}
		return func() error {
			for b := range c.Out.Dim(0) {
				if n := m.end(c, b); n < 0 || n > m.l {
					return fmt.Errorf("ops: mean tokens: lengths[%d] is %d: want [0, %d]", b, n, m.l)
				}
			}
			c.Engine.For(c.Out.Dim(0), op.RowGrain(m.l*cols), body)
			return nil
		}, nil
	}
	o.On = oncuda.MeanTokens(m.l, m.skip)
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		operands := []*gorgonia.Node{dy}
		if m.lengths {
			operands = append(operands, in[1])
		}
		return append(gorgonia.Nodes{op.Apply(m.backward(), operands...)}, make(gorgonia.Nodes, len(in)-1)...)
	}
	return o
}

// backward returns dx for dy and the lengths.
func (m meanTokens) backward() *op.Op {
	o := &op.Op{Kind: "mean tokens dx", Args: m.args(), Diff: []bool{false}}
	if m.lengths {
		o.Diff = append(o.Diff, false)
	}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return tensor.Shape{in[0][0] * m.l, in[0][1]}, m.check(in, in[0][0])
	}
	o.Host = func(c *exec.Call) (exec.Step, error) {
		cols := c.Out.Dim(1)
		return c.For(c.In[0].Dim(0), op.RowGrain(m.l*cols), func(_, lo, hi int) {
			for b := lo; b < hi; b++ {
				dy, out, end := c.In[0].F32[b*cols:][:cols], c.Out.F32[b*m.l*cols:][:m.l*cols], m.end(c, b)
				for r := range m.l {
					if row := out[r*cols:][:cols]; r >= m.skip && r < end {
						vector.Scale(row, 1/float32(end-m.skip), dy)
					} else {
						clear(row)
					}
				}
			}
		})
	}
	o.On = oncuda.MeanTokensGrad(m.l, m.skip)
	return o
}
