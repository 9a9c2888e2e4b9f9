package ops

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PoolSimilarity returns the dot products of features f (B, C) with the rows of a pool:
// (B, N), column j for row j. Columns that do not exist are 0 and take no part in the
// gradient; whoever reads the result must leave them out (CrossEntropyArgs.Cols). The
// gradient goes to f alone.
func PoolSimilarity(f *gorgonia.Node, p Pool) *gorgonia.Node {
	at, in := p.operands(gorgonia.Nodes{f})
	o := &op{kind: "pool similarity", args: at.args(), diff: make([]bool, len(in))}
	o.diff[0] = true
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := need(len(in[0]) == 2, "want f (B, C)"); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0], at.rows(in)}, at.check(in, in[0][1])
	}
	o.flops = poolFLOPs(at)
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		s, product := new(poolState), newPoolProduct(c, at, 0)
		return func() error {
			if err := s.read(c, at); err != nil {
				return err
			}
			product.forward(s)
			return nil
		}, nil
	}
	o.grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		grads[0] = poolGradient(dy, p)
		return grads
	}
	return apply(o, in...)
}

// rows returns N, 0 if the queue's shape is wrong.
func (p poolOperands) rows(in []tensor.Shape) int {
	if len(in[p.queue]) == 0 {
		return 0
	}
	return in[p.queue][0]
}

// poolFLOPs counts the operations of a product of operand 0 with the whole pool.
func poolFLOPs(at poolOperands) func(in []tensor.Shape) int64 {
	return func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[at.queue].TotalSize()) }
}

// poolGradient returns df = dy pool, (B, C), for the gradient dy (B, N) of the dot
// products of B rows with a pool.
func poolGradient(dy *gorgonia.Node, p Pool) *gorgonia.Node {
	at, in := p.operands(gorgonia.Nodes{dy})
	o := &op{kind: "pool similarity df", args: at.args(), diff: make([]bool, len(in))}
	o.shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := need(len(in[at.keys]) == 2, "want keys (B2, C)"); err != nil {
			return nil, err
		}
		width := in[at.keys][1]
		return tensor.Shape{in[0][0], width}, at.check(in, width)
	}
	o.flops = poolFLOPs(at)
	o.prepare = func(c *exec.Call) (exec.Step, error) {
		s, product := new(poolState), newPoolProduct(c, at, 0)
		return func() error {
			if err := s.read(c, at); err != nil {
				return err
			}
			product.backward(s, c.Out.F32)
			return nil
		}, nil
	}
	return apply(o, in...)
}

// poolProduct multiplies an operand of an op by a pool, each column once.
type poolProduct struct {
	c     *exec.Call
	at    poolOperands
	left  int // position of the operand
	total int // N
	width int // C

	dot, sum  *kernel.Product // left pool^T and left pool
	clearFrom int
	clearRows func(worker, lo, hi int)
}

func newPoolProduct(c *exec.Call, at poolOperands, left int) *poolProduct {
	p := &poolProduct{c: c, at: at, left: left, total: c.In[at.queue].Dim(0), width: c.In[at.queue].Dim(1)}
	p.dot, p.sum = newProduct(c, false, true), newProduct(c, false, false)
	p.dot.M, p.dot.K, p.dot.LDC = c.In[left].Dim(0), p.width, p.total
	p.sum.M, p.sum.N, p.sum.LDC = c.In[left].Dim(0), p.width, p.width
	p.clearRows = func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			clear(c.Out.F32[r*p.total+p.clearFrom : (r+1)*p.total])
		}
	}
	return p
}

// rows returns the pool's rows in segment g as an operand.
func (p *poolProduct) rows(g segment) kernel.Matrix {
	i := p.at.queue
	if g.batch {
		i = p.at.keys
	}
	return operand(p.c, i, g.row*p.width, p.width)
}

// forward sets the output to left pool^T (B, N).
func (p *poolProduct) forward(s *poolState) {
	p.dot.A = operand(p.c, p.left, 0, p.width)
	for _, g := range s.segments {
		p.dot.N, p.dot.B, p.dot.C = g.n, p.rows(g), p.c.Out.F32[g.col:]
		p.c.Engine.Multiply(p.dot)
	}
	p.clearAfter(s.cols)
}

// clearAfter sets the columns of the output from cols on to 0.
func (p *poolProduct) clearAfter(cols int) {
	if p.clearFrom = cols; cols < p.total {
		p.c.Engine.For(p.dot.M, grainRows(p.total-cols), p.clearRows)
	}
}

// backward sets out (B, C) to left pool for an operand left (B, N).
func (p *poolProduct) backward(s *poolState, out []float32) {
	p.sum.C, p.sum.Beta = out, 0
	for _, g := range s.segments {
		p.sum.K, p.sum.A, p.sum.B = g.n, operand(p.c, p.left, g.col, p.total), p.rows(g)
		p.c.Engine.Multiply(p.sum)
		p.sum.Beta = 1
	}
	if len(s.segments) == 0 {
		clear(out)
	}
}
