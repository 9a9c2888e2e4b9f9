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

// PrependToken puts token, (D) or several (K, D), before each sequence of p rows of
// x (B*p, D): (B*(K+p), D), where K is 1 for a single token.
func PrependToken(x, token *gorgonia.Node, p int) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "prepend token", Args: fmt.Sprintf("p=%d", p), Diff: []bool{true, true},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			x, token := in[0], in[1]
			if err := op.All(
				op.Need(p > 0, "a sequence has at least one row (got %d)", p),
				op.Need(len(x) == 2, "want x (B*p, D)"),
				op.Need(len(token) == 1 || len(token) == 2, "want token (D) or (K, D) (got %v)", token),
			); err != nil {
				return nil, err
			}
			return tensor.Shape{x[0] / p * (p + token.TotalSize()/x[1]), x[1]}, op.All(
				op.Need(x[0]%p == 0, "rows must be a multiple of %d (got %d)", p, x[0]),
				op.Need(token[len(token)-1] == x[1], "token must have %d columns (got %v)", x[1], token),
			)
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			first, rest := c.In[1].Len(), p*c.In[0].Dim(1)
			return c.For(c.In[0].Dim(0)/p, op.RowGrain(first+rest), func(_, lo, hi int) {
				x, token, out := c.In[0].F32, c.In[1].F32, c.Out.F32
				for b := lo; b < hi; b++ {
					at := b * (first + rest)
					copy(out[at:at+first], token)
					copy(out[at+first:at+first+rest], x[b*rest:(b+1)*rest])
				}
			})
		},
		On: oncuda.Prepend(p),
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(dropToken(p, in[1].Shape()), dy), op.Apply(sumToken(p, in[1].Shape()), dy)}
		},
	}, x, token)
}

// dropToken returns dx: dy without the tokens.
func dropToken(p int, token tensor.Shape) *op.Op {
	cols := token[len(token)-1]
	k := token.TotalSize() / cols
	return &op.Op{
		Kind: "prepend token dx", Args: fmt.Sprintf("p=%d k=%d", p, k), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{in[0][0] / (p + k) * p, cols},
				op.Need(in[0][0]%(p+k) == 0 && in[0][1] == cols, "dy does not fit")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			first, rest := k*cols, p*cols
			return c.For(c.Out.Dim(0)/p, op.RowGrain(rest), func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					at := b*(first+rest) + first
					copy(c.Out.F32[b*rest:(b+1)*rest], c.In[0].F32[at:at+rest])
				}
			})
		},
		On: oncuda.Drop(p, k),
	}
}

// sumToken returns dtoken: the sum over the sequences of dy's tokens.
func sumToken(p int, token tensor.Shape) *op.Op {
	cols := token[len(token)-1]
	k := token.TotalSize() / cols
	return &op.Op{
		Kind: "prepend token dtoken", Args: fmt.Sprintf("p=%d token=%v", p, token), Diff: []bool{false},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return token.Clone(), op.Need(in[0][0]%(p+k) == 0 && in[0][1] == cols, "dy does not fit")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			size := (p + k) * cols
			return func() error { // B rows of a few thousand elements: not worth a thread
				dy, out := c.In[0].F32, c.Out.F32
				copy(out, dy[:len(out)])
				for at := size; at < len(dy); at += size {
					vector.Add(out, out, dy[at:at+len(out)])
				}
				return nil
			}, nil
		},
		On: oncuda.SumSequences(k, p+k),
	}
}
