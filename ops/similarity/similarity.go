package similarity

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Similarity returns the dot products of features f (B, C) with the B2 features
// keys (B2, C) of a batch and the Q features of a queue (Q, C):
// [f keys^T | f queue^T], (B, B2+Q). queue may be nil.
//
// cols is a scalar int32 node with the number of columns that exist, at most
// B2+Q, or nil for all: a queue that is not full yet. The columns after it are
// not computed: they are 0 and take no part in the gradient, and whoever reads
// the result must leave them out (contrast.CrossEntropyArgs.Cols).
//
// The gradient goes to f and keys, not to the queue.
func Similarity(f, keys, queue, cols *gorgonia.Node) *gorgonia.Node {
	s, in := newSimilarity(f, keys, queue, cols)
	return op.Apply(s.forward(), in...)
}

// newSimilarity returns the description of the op and its operands.
func newSimilarity(f, keys, queue, cols *gorgonia.Node) (*similarity, gorgonia.Nodes) {
	in := op.Operands{f, keys}
	s := &similarity{queue: in.Add(queue), cols: in.Add(cols)}
	s.operands = len(in)
	return s, gorgonia.Nodes(in)
}

// similarity describes the op. queue and cols are the positions of those
// operands, or -1. The backward ops have dy instead of one operand, in its place.
type similarity struct {
	queue, cols int
	operands    int
}

func (s *similarity) args() string { return fmt.Sprintf("queue=%d cols=%d", s.queue, s.cols) }

func (s *similarity) shape(in []tensor.Shape) (tensor.Shape, error) {
	f, keys := in[0], in[1]
	if err := op.Need(len(f) == 2 && len(keys) == 2 && f[1] == keys[1], "want f (B, C) and keys (B2, C)"); err != nil {
		return nil, err
	}
	out := tensor.Shape{f[0], keys[0]}
	if s.queue >= 0 {
		q := in[s.queue]
		if err := op.Need(len(q) == 2 && q[1] == f[1], "queue must have shape (Q, %d) (got %v)", f[1], q); err != nil {
			return nil, err
		}
		out[1] += q[0]
	}
	return out, s.checkCols(in)
}

func (s *similarity) checkCols(in []tensor.Shape) error {
	return op.Need(s.cols < 0 || len(in[s.cols]) == 0, "cols must be a scalar")
}

// columns returns how many columns of a result with n keys and q queue entries
// exist in each part.
func (s *similarity) columns(c *exec.Call, n, q int) (fromKeys, fromQueue int, err error) {
	if s.cols < 0 {
		return n, q, nil
	}
	cols := int(c.In[s.cols].I32[0])
	if cols < 0 || cols > n+q {
		return 0, 0, fmt.Errorf("ops: similarity: cols is %d: want [0, %d]", cols, n+q)
	}
	return min(cols, n), max(0, cols-n), nil
}

func (s *similarity) forward() *op.Op {
	o := &op.Op{Kind: "similarity", Args: s.args(), Shape: s.shape, Diff: make([]bool, s.operands)}
	o.Diff[0], o.Diff[1] = true, true
	o.FLOPs = func(in []tensor.Shape) int64 {
		out, err := s.shape(in)
		if err != nil {
			return 0
		}
		return 2 * int64(out[0]) * int64(out[1]) * int64(in[0][1])
	}
	o.On = oncuda.Similarity{Queue: s.queue, Cols: s.cols}.Step()
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, width, n, total := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(0), c.Out.Dim(1)
		p := op.Product(c, false, true)
		p.M, p.K, p.LDC = b, width, total
		clearFrom := 0
		body := func(_, lo, hi int) {
			for r := lo; r < hi; r++ {
				clear(c.Out.F32[r*total+clearFrom : (r+1)*total])
			}
		}
		return func() error {
			k, q, err := s.columns(c, n, total-n)
			if err != nil {
				return err
			}
			p.N, p.A, p.B, p.C = k, op.Matrix(c, 0, 0, width), op.Matrix(c, 1, 0, width), c.Out.F32
			c.Engine.Multiply(p)
			if q > 0 {
				p.N, p.B, p.C = q, op.Matrix(c, s.queue, 0, width), c.Out.F32[n:]
				c.Engine.Multiply(p)
			}
			if clearFrom = k + q; clearFrom < total {
				c.Engine.For(b, op.RowGrain(total-clearFrom), body)
			}
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, s.operands)
		forF := append(gorgonia.Nodes{dy}, in[1:]...)
		grads[0] = op.Apply(s.gradF(), forF...)
		forKeys := gorgonia.Nodes{in[0], dy}
		g := &similarity{queue: -1, cols: -1}
		if s.cols >= 0 {
			g.cols = len(forKeys)
			forKeys = append(forKeys, in[s.cols])
		}
		g.operands = len(forKeys)
		grads[1] = op.Apply(g.gradKeys(in[1].Shape()[0]), forKeys...)
		return grads
	}
	return o
}

// gradF returns df = dy [keys; queue] for dy, keys and the other operands.
func (s *similarity) gradF() *op.Op {
	o := &op.Op{Kind: "similarity df", Args: s.args(), Diff: make([]bool, s.operands)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return tensor.Shape{in[0][0], in[1][1]}, s.checkCols(in)
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][1]) }
	o.On = oncuda.Similarity{Queue: s.queue, Cols: s.cols}.GradF()
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, total, n, width := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(0), c.In[1].Dim(1)
		p := op.Product(c, false, false)
		p.M, p.N, p.LDC = b, width, width
		return func() error {
			k, q, err := s.columns(c, n, total-n)
			if err != nil {
				return err
			}
			p.K, p.Beta, p.A, p.B, p.C = k, 0, op.Matrix(c, 0, 0, total), op.Matrix(c, 1, 0, width), c.Out.F32
			c.Engine.Multiply(p)
			if q > 0 {
				p.K, p.Beta, p.A, p.B = q, 1, op.Matrix(c, 0, n, total), op.Matrix(c, s.queue, 0, width)
				c.Engine.Multiply(p)
			}
			return nil
		}, nil
	}
	return o
}

// gradKeys returns dkeys = dy^T f, for f, dy and cols, of the first n columns.
func (s *similarity) gradKeys(n int) *op.Op {
	o := &op.Op{Kind: "similarity dkeys", Args: fmt.Sprintf("%s n=%d", s.args(), n), Diff: make([]bool, s.operands)}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		return tensor.Shape{n, in[0][1]}, s.checkCols(in)
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(n) * int64(in[0][1]) }
	o.On = oncuda.Similarity{Queue: s.queue, Cols: s.cols}.GradKeys(n)
	o.Host = func(c *exec.Call) (exec.Step, error) {
		b, width, total := c.In[0].Dim(0), c.In[0].Dim(1), c.In[1].Dim(1)
		p := op.Product(c, true, false)
		p.N, p.K, p.LDC = width, b, width
		return func() error {
			k, _, err := s.columns(c, n, total-n)
			if err != nil {
				return err
			}
			p.M, p.A, p.B, p.C = k, op.Matrix(c, 1, 0, total), op.Matrix(c, 0, 0, width), c.Out.F32
			c.Engine.Multiply(p)
			clear(c.Out.F32[k*width:])
			return nil
		}, nil
	}
	return o
}
