package interaction

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/interaction/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Mean returns the weights (R*Len) by which the maxima of tokens are averaged: 1/n for the n
// tokens of a sequence that take part, 0 for the others.
func (q Tokens) Mean() *gorgonia.Node {
	return q.weights("token mean", oncuda.TokenMean, func(w []float32) { vector.Fill(w, 1/float32(max(1, len(w)))) })
}

// Sum returns weights of 1 for tokens that take part, 0 for the others: (R*Len).
func (q Tokens) Sum() *gorgonia.Node {
	return q.weights("token sum", oncuda.TokenSum, func(w []float32) { vector.Fill(w, 1) })
}

// weights are those of the rows that set gives to the tokens of a sequence that take part.
func (q Tokens) weights(kind string, mode int, set func(w []float32)) *gorgonia.Node {
	o := q.perToken(kind, 1, mode, func(c *exec.Call, at, lo, hi int) { set(c.Out.F32[at+lo : at+hi]) })
	return op.Apply(o, q.with(q.Rows)...)
}

// Spread returns the value of each sequence, values (R), for those of its tokens that take part, 0 for the others:
// (R*Len). No gradient flows through it.
func (q Tokens) Spread(values *gorgonia.Node) *gorgonia.Node {
	o := q.perToken("token spread", 2, oncuda.TokenSpread, func(c *exec.Call, at, lo, hi int) {
		vector.Fill(c.Out.F32[at+lo:at+hi], c.In[1].F32[at/q.Len])
	})
	shape := o.Shape
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		out, err := shape(in)
		if err != nil {
			return nil, err
		}
		return out, op.WantShape(in, 1, "values", out[0]/q.Len)
	}
	return op.Apply(o, q.with(q.Rows, values)...)
}

// Softmax returns the weights softmax(logits) over the tokens of each sequence that take part,
// 0 for the others, for logits (R*Len, 1): (R*Len). The gradient goes to the logits.
func (q Tokens) Softmax(logits *gorgonia.Node) *gorgonia.Node {
	o := q.perToken("token softmax", 1, oncuda.TokenSoftmax, func(c *exec.Call, at, lo, hi int) {
		if hi > lo {
			vector.Softmax(c.Out.F32[at+lo:at+hi], c.In[0].F32[at+lo:at+hi])
		}
	})
	o.Diff[0] = true
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		o := q.perToken("token softmax dlogits", 3, oncuda.TokenSoftmaxSlopes, func(c *exec.Call, at, lo, hi int) {
			vector.SoftmaxGradRow(c.Out.F32[at+lo:at+hi], c.In[1].F32[at+lo:at+hi], c.In[2].F32[at+lo:at+hi])
		})
		shape := o.Shape
		o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
			_, err := shape(in)
			return in[0].Clone(), err
		}
		grads := make(gorgonia.Nodes, len(in))
		grads[0] = op.Apply(o, q.with(in[0], out, dy)...)
		return grads
	}
	return op.Apply(o, q.with(logits)...)
}

// with are operands with the lengths behind them, if there are any.
func (q Tokens) with(in ...*gorgonia.Node) gorgonia.Nodes {
	if q.Lengths != nil {
		in = append(in, q.Lengths)
	}
	return in
}

// perToken is an op with a result for each token, 0 for those that take no part, of so many
// operands before the lengths. The first one has a row for each token. row sets the results of
// the sequence whose tokens begin at row at, of which [lo, hi) take part; mode does so on the CUDA device.
func (q Tokens) perToken(kind string, operands, mode int, row func(c *exec.Call, at, lo, hi int)) *op.Op {
	s := side{lengths: -1, first: q.First, len: q.Len}
	if q.Lengths != nil {
		s.lengths = operands
	}
	return &op.Op{
		Kind: kind, Args: fmt.Sprintf("%+v", s), Diff: make([]bool, len(q.with(make(gorgonia.Nodes, operands)...))),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			n, err := s.sequences(in, in[0])
			return tensor.Shape{n * s.len}, err
		},
		On: s.onCUDA().Tokens(mode, operands),
		Host: func(c *exec.Call) (exec.Step, error) {
			n := c.In[0].Dim(0) / s.len
			body := func(_, from, to int) {
				for i := from; i < to; i++ {
					clear(c.Out.F32[i*s.len : (i+1)*s.len])
					lo, hi := s.span(c, i)
					row(c, i*s.len, lo, hi)
				}
			}
			return func() error {
				if err := s.check(c); err != nil {
					return err
				}
				c.Engine.For(n, op.RowGrain(8*s.len), body)
				return nil
			}, nil
		},
	}
}
