package pool

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/pool/internal/oncuda"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Similarity returns the dot products of features f (B, C) with the rows of a pool:
// (B, N), column j for row j. Columns that do not exist are 0 and take no part in the
// gradient; whoever reads the result must leave them out (contrast.CrossEntropyArgs.Cols). The
// gradient goes to f alone.
func Similarity(f *gorgonia.Node, p Pool) *gorgonia.Node {
	at, in := p.Operands(gorgonia.Nodes{f})
	o := &op.Op{Kind: "pool similarity", Args: at.Args(), Diff: make([]bool, len(in)),
		On: oncuda.Similarity(oncuda.Operands(at))}
	o.Diff[0] = true
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[0]) == 2, "want f (B, C)"); err != nil {
			return nil, err
		}
		return tensor.Shape{in[0][0], at.Rows(in)}, at.Check(in, in[0][1])
	}
	o.FLOPs = poolFLOPs(at)
	o.Host = func(c *exec.Call) (exec.Step, error) {
		s, product := new(State), NewProduct(c, at, 0)
		return func() error {
			if err := s.Read(c, at); err != nil {
				return err
			}
			product.Forward(s)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
		grads := make(gorgonia.Nodes, len(in))
		grads[0] = Gradient(dy, p)
		return grads
	}
	return op.Apply(o, in...)
}

// Rows returns N, 0 if the queue's shape is wrong.
func (p Operands) Rows(in []tensor.Shape) int {
	if len(in[p.Queue]) == 0 {
		return 0
	}
	return in[p.Queue][0]
}

// poolFLOPs counts the operations of a product of operand 0 with the whole pool.
func poolFLOPs(at Operands) func(in []tensor.Shape) int64 {
	return func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[at.Queue].TotalSize()) }
}

// Gradient returns df = dy pool, (B, C), for the gradient dy (B, N) of the dot
// products of B rows with a pool.
func Gradient(dy *gorgonia.Node, p Pool) *gorgonia.Node {
	at, in := p.Operands(gorgonia.Nodes{dy})
	o := &op.Op{Kind: "pool similarity df", Args: at.Args(), Diff: make([]bool, len(in)),
		On: oncuda.Gradient(oncuda.Operands(at))}
	o.Shape = func(in []tensor.Shape) (tensor.Shape, error) {
		if err := op.Need(len(in[at.Keys]) == 2, "want keys (B2, C)"); err != nil {
			return nil, err
		}
		width := in[at.Keys][1]
		return tensor.Shape{in[0][0], width}, at.Check(in, width)
	}
	o.FLOPs = poolFLOPs(at)
	o.Host = func(c *exec.Call) (exec.Step, error) {
		s, product := new(State), NewProduct(c, at, 0)
		return func() error {
			if err := s.Read(c, at); err != nil {
				return err
			}
			product.Backward(s, c.Out.F32)
			return nil
		}, nil
	}
	return op.Apply(o, in...)
}

// Product multiplies an operand of an op by a pool, each column once.
type Product struct {
	c     *exec.Call
	at    Operands
	left  int // position of the operand
	total int // N
	width int // C

	Dot, Sum  *gemm.Product // left pool^T and left pool
	clearFrom int
	clearRows func(worker, lo, hi int)
}

// NewProduct returns the product of operand left (B, C), or (B, N) for Backward, of the op c
// with the pool at.
func NewProduct(c *exec.Call, at Operands, left int) *Product {
	p := &Product{c: c, at: at, left: left, total: c.In[at.Queue].Dim(0), width: c.In[at.Queue].Dim(1)}
	p.Dot, p.Sum = op.Product(c, false, true), op.Product(c, false, false)
	p.Dot.M, p.Dot.K, p.Dot.LDC = c.In[left].Dim(0), p.width, p.total
	p.Sum.M, p.Sum.N, p.Sum.LDC = c.In[left].Dim(0), p.width, p.width
	p.clearRows = func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			clear(c.Out.F32[r*p.total+p.clearFrom : (r+1)*p.total])
		}
	}
	return p
}

// rows returns the pool's rows in segment g as an operand.
func (p *Product) rows(g Segment) gemm.Matrix {
	i := p.at.Queue
	if g.Batch {
		i = p.at.Keys
	}
	return op.Matrix(p.c, i, g.Row*p.width, p.width)
}

// Forward sets the output to left pool^T (B, N).
func (p *Product) Forward(s *State) {
	p.Dot.A = op.Matrix(p.c, p.left, 0, p.width)
	for _, g := range s.Segments {
		p.Dot.N, p.Dot.B, p.Dot.C = g.N, p.rows(g), p.c.Out.F32[g.Col:]
		p.c.Engine.Multiply(p.Dot)
	}
	p.ClearAfter(s.Cols)
}

// ClearAfter sets the columns of the output from cols on to 0.
func (p *Product) ClearAfter(cols int) {
	if p.clearFrom = cols; cols < p.total {
		p.c.Engine.For(p.Dot.M, op.RowGrain(p.total-cols), p.clearRows)
	}
}

// Backward sets out (B, C) to left pool for an operand left (B, N).
func (p *Product) Backward(s *State, out []float32) {
	p.Sum.C, p.Sum.Beta = out, 0
	for _, g := range s.Segments {
		p.Sum.K, p.Sum.A, p.Sum.B = g.N, op.Matrix(p.c, p.left, g.Col, p.total), p.rows(g)
		p.c.Engine.Multiply(p.Sum)
		p.Sum.Beta = 1
	}
	if len(s.Segments) == 0 {
		clear(out)
	}
}
