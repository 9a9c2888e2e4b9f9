package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Linear returns x W^T + b for x (R, in), w (out, in) and b (out): (R, out).
// b may be nil.
func Linear(x, w, b *gorgonia.Node) *gorgonia.Node { return linear{}.apply(x, w, b) }

// LinearPart is Linear with the n rows of w and elements of b that begin at from:
// (R, n). So a caller that needs the queries alone of a joint projection to queries,
// keys and values computes no others.
func LinearPart(x, w, b *gorgonia.Node, from, n int) *gorgonia.Node {
	if n == 0 {
		n = -1 // 0 stands for all
	}
	return linear{from: from, n: n}.apply(x, w, b)
}

// LinearGELU is GELU(Linear(x, w, b)) in one pass: the activation is computed while a
// part of the product is still in the cache. b may be nil.
func LinearGELU(x, w, b *gorgonia.Node) *gorgonia.Node {
	return linear{then: vector.ByGELU}.apply(x, w, b)
}

// LinearActivated is LinearGELU with the activation of a name:
//
//	gelu        x Phi(x)
//	gelu_tanh   x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//	quick_gelu  x sigmoid(1.702 x)
//	silu        x sigmoid(x)
//
// all of Hendrycks and Gimpel 2016.
func LinearActivated(x, w, b *gorgonia.Node, name string) *gorgonia.Node {
	return linear{then: activation(name)}.apply(x, w, b)
}

// linear describes a linear op: all rows of w, or the n rows that begin at from.
type linear struct {
	from, n int
	bias    bool
	// then is the activation that follows, if any. What it is applied to is the op's
	// auxiliary result.
	then vector.Activation
}

func (l linear) apply(x, w, b *gorgonia.Node) *gorgonia.Node {
	in := []*gorgonia.Node{x, w}
	if b != nil {
		l.bias = true
		in = append(in, b)
	}
	out := op.Apply(l.forward(), in...)
	if l.then != 0 {
		before(out) // made here, so that the backward pass does not keep the output
	}
	return out
}

// before names what the op of out, an output of LinearActivated, applied its activation to.
func before(out *gorgonia.Node) *gorgonia.Node { return op.Take(out, 0, out.Shape()) }

func (l linear) args() string {
	return fmt.Sprintf("bias=%t from=%d n=%d then=%d", l.bias, l.from, l.n, l.then)
}

// rows returns how many rows of w take part.
func (l linear) rows(w tensor.Shape) int {
	if l.n == 0 {
		return w[0]
	}
	return l.n
}

func (l linear) shape(in []tensor.Shape) (tensor.Shape, error) {
	x, w := in[0], in[1]
	if err := op.Need(len(x) == 2 && len(w) == 2, "want x (R, in) and w (out, in)"); err != nil {
		return nil, err
	}
	if err := op.All(
		op.Need(x[1] == w[1], "x has %d columns, w %d", x[1], w[1]),
		op.Need(l.from >= 0 && l.n >= 0 && l.from+l.rows(w) <= w[0],
			"a part must have at least one row and lie in the %d rows of w (got %d rows from %d)", w[0], max(l.n, 0),
			l.from),
	); err != nil {
		return nil, err
	}
	if l.bias {
		if err := op.Need(len(in[2]) == 1 && in[2][0] == w[0], "bias must have shape (%d) (got %v)", w[0],
			in[2]); err != nil {
			return nil, err
		}
	}
	return tensor.Shape{x[0], l.rows(w)}, nil
}

func (l linear) forward() *op.Op {
	o := &op.Op{Kind: "linear", Args: l.args(), Diff: []bool{true, true}, Shape: l.shape, ReadsHalf: []int{0, 1},
		WritesHalf: []int{op.Output}}
	if l.bias {
		o.Diff = append(o.Diff, true)
	}
	if l.then != 0 {
		o.Kind = "linear " + l.then.String()
		o.WritesHalf, o.SparesAux = []int{op.Output, 0}, true
		o.Aux = func(in []tensor.Shape) []exec.AuxSpec {
			return []exec.AuxSpec{{Shape: tensor.Shape{in[0][0], l.rows(in[1])}}}
		}
	}
	o.FLOPs = func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(l.rows(in[1])) }
	o.On = oncuda.Linear(l.from, l.bias, l.then)
	o.HalfScratch = func(in []tensor.Shape, _ int) int { return in[0][0] * l.rows(in[1]) }
	o.Host = func(c *exec.Call) (exec.Step, error) {
		inner := c.In[0].Dim(1)
		p := op.Product(c, false, true)
		p.M, p.N, p.K, p.LDC, p.Activation = c.In[0].Dim(0), l.rows(c.In[1].Shape), inner, l.rows(c.In[1].Shape), l.then
		spared := len(c.Aux) == 0 // the activation takes the place of what it is applied to
		return func() error {
			p.A, p.B = op.Matrix(c, 0, 0, inner), op.Matrix(c, 1, l.from*inner, inner)
			if l.bias {
				p.Bias = c.In[2].F32[l.from : l.from+p.N]
			}
			if l.then == 0 || spared {
				into(p, c, c.Out)
			} else {
				into(p, c, c.Aux[0])
			}
			if l.then != 0 {
				p.Activated, p.ActivatedHalf = c.Out.F32, c.Out.BF16
			}
			p.Packed = c.In[1].Packs.Of(c.Engine, p, l.from)
			c.Engine.Multiply(p)
			return nil
		}, nil
	}
	o.Grad = func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
		if l.then != 0 {
			dy = activationGradient(l.then, out, dy)
		}
		total := in[1].Shape()[0]
		grads := gorgonia.Nodes{
			op.Apply(l.gradX(0), dy, in[1]),
			op.Apply(l.gradW(total), dy, again(in[0])),
		}
		if l.bias {
			grads = append(grads, op.Apply(columnSums(l.from, total), dy))
		}
		return grads
	}
	return o
}

// into has a product write c's output or auxiliary result to: where that is bfloat16, C is the
// scratch.
func into(p *gemm.Product, c *exec.Call, to exec.Array) {
	p.C, p.Half = to.F32, to.BF16
	if to.BF16 != nil {
		p.C = c.Scratch
	}
}

const linearGradKind = "linear dx"

// gradX returns dx = dy W for dy (R, n), w (out, in). If x is the output of an activation, it
// may be asked for the gradient of what that was applied to instead, a third operand (R, in):
// the derivative is multiplied in while a part of the product is still in the cache.
func (l linear) gradX(then vector.Activation) *op.Op {
	o := &op.Op{
		Kind: linearGradKind, Args: l.args(), Diff: []bool{false, false}, Accumulates: true, ReadsHalf: []int{0, 1},
		WritesHalf: []int{op.Output},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			dx := tensor.Shape{in[0][0], in[1][1]}
			return dx, op.Need(in[0][1] == l.rows(in[1]) && (then == 0 || in[2].Eq(dx)), "dy and w do not fit")
		},
		FLOPs:       func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][1]) },
		HalfScratch: func(in []tensor.Shape, _ int) int { return in[0][0] * in[1][1] },
		On:          oncuda.LinearGradX(l.from, then),
		Host: func(c *exec.Call) (exec.Step, error) {
			p := op.Product(c, false, false)
			p.M, p.N, p.K, p.LDC, p.Activation = c.In[0].Dim(0), c.In[1].Dim(1), c.In[0].Dim(1), c.In[1].Dim(1), then
			p.Beta = op.Beta(c)
			return func() error {
				p.A, p.B = op.Matrix(c, 0, 0, p.K), op.Matrix(c, 1, l.from*p.N, p.N)
				if then != 0 {
					p.Before = gemm.Matrix{F32: c.In[2].F32, BF16: c.In[2].BF16, LD: p.N}
				}
				into(p, c, c.Out)
				c.Engine.Multiply(p)
				return nil
			}, nil
		},
	}
	if then != 0 {
		o.Kind, o.Args = linearGradKind+" "+then.String(), l.args()+fmt.Sprintf(" then=%d", then)
		o.Diff, o.ReadsHalf, o.Accumulates = append(o.Diff, false), append(o.ReadsHalf, 2), false
	}
	o.For = l
	return o
}

// activationGradient returns the gradient of what the op of out applied its activation to, for
// dy, that of out. If dy is the gradient that one linear layer gives its operand, one op
// computes both.
func activationGradient(of vector.Activation, out, dy *gorgonia.Node) *gorgonia.Node {
	if o := op.Of(dy); o != nil && o.Kind == linearGradKind {
		return op.Apply(o.For.(linear).gradX(of), op.Operand(dy, 0), op.Operand(dy, 1), before(out))
	}
	return op.Apply(activationGrad(of), before(out), dy)
}

// gradW returns dw (total, in) for dy (R, n), x (R, in): dy^T x in the rows that
// take part, zero in the others.
func (l linear) gradW(total int) *op.Op {
	return &op.Op{
		Kind: "linear dw", Args: fmt.Sprintf("from=%d total=%d", l.from, total), Diff: []bool{false, false},
		Accumulates: true,
		ReadsHalf:   []int{0, 1},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return tensor.Shape{total, in[1][1]},
				op.Need(in[0][0] == in[1][0] && l.from+in[0][1] <= total, "dy and x do not fit")
		},
		FLOPs: func(in []tensor.Shape) int64 { return 2 * int64(in[0][0]) * int64(in[0][1]) * int64(in[1][1]) },
		On:    oncuda.LinearGradW(l.from),
		Host: func(c *exec.Call) (exec.Step, error) {
			p := op.Product(c, true, false)
			p.M, p.N, p.K, p.LDC = c.In[0].Dim(1), c.In[1].Dim(1), c.In[0].Dim(0), c.In[1].Dim(1)
			p.Beta = op.Beta(c)
			first, end := l.from*p.N, (l.from+p.M)*p.N
			return func() error {
				if !c.Accumulate {
					clear(c.Out.F32[:first])
					clear(c.Out.F32[end:])
				}
				p.A, p.B, p.C = op.Matrix(c, 0, 0, p.M), op.Matrix(c, 1, 0, p.N), c.Out.F32[first:end]
				c.Engine.Multiply(p)
				return nil
			}, nil
		},
	}
}

// activationGrad returns dx for x, what a linear op applied its activation to, and dy.
func activationGrad(of vector.Activation) *op.Op {
	return &op.Op{
		Kind: of.String() + " dx", Args: "aux", Diff: []bool{false, false}, InPlace: []int{1},
		ReadsHalf: []int{0}, WritesHalf: []int{op.Output},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		On: oncuda.ActivationGrad(of),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), geluGrain, func(_, lo, hi int) {
				activationGradPart(of, c.Out, c.In[0], c.In[1].F32, lo, hi)
			})
		},
	}
}

// activationGradPart computes elements lo to hi of the gradient of x, either of which may be
// bfloat16.
func activationGradPart(of vector.Activation, dx, x exec.Array, dy []float32, lo, hi int) {
	switch {
	case dx.BF16 == nil && x.BF16 == nil:
		of.Grad(dx.F32[lo:hi], x.F32[lo:hi], dy[lo:hi])
	case dx.BF16 == nil:
		of.GradOfHalf(dx.F32[lo:hi], x.BF16[lo:hi], dy[lo:hi])
	case x.BF16 == nil:
		of.GradToBF16(dx.BF16[lo:hi], x.F32[lo:hi], dy[lo:hi])
	default:
		of.GradHalves(dx.BF16[lo:hi], x.BF16[lo:hi], dy[lo:hi])
	}
}

// columnBlock is the number of rows whose sum is made in one go. It is fixed, so that
// the order of additions does not depend on the threads.
const columnBlock = 128

// columnSums returns (total): from element from on the sums over the rows of x
// (R, D), zero elsewhere.
func columnSums(from, total int) *op.Op {
	return &op.Op{
		Kind: "column sums", Args: fmt.Sprintf("from=%d total=%d", from, total), Diff: []bool{false},
		ReadsHalf: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			if err := op.Need(len(in[0]) == 2, "want a matrix"); err != nil {
				return nil, err
			}
			return tensor.Shape{total}, op.Need(from+in[0][1] <= total, "%d columns from %d on do not fit into %d",
				in[0][1], from, total)
		},
		Scratch: func(in []tensor.Shape, _ int) int {
			return (in[0][0] + columnBlock - 1) / columnBlock * in[0][1]
		},
		On: oncuda.ColumnSums(from, total),
		Host: func(c *exec.Call) (exec.Step, error) {
			rows, cols := c.In[0].Dim(0), c.In[0].Dim(1)
			blocks := (rows + columnBlock - 1) / columnBlock
			body := func(_, lo, hi int) {
				for b := lo; b < hi; b++ {
					sum := c.Scratch[b*cols : (b+1)*cols]
					vector.Fill(sum, 0)
					at, to := b*columnBlock*cols, min(rows, (b+1)*columnBlock)*cols
					if x := c.In[0]; x.F32 != nil {
						vector.SumRows(sum, x.F32[at:to])
					} else {
						vector.SumRowsBF16(sum, x.BF16[at:to])
					}
				}
			}
			return func() error {
				c.Engine.For(blocks, 1, body)
				clear(c.Out.F32)
				vector.SumRows(c.Out.F32[from:from+cols], c.Scratch)
				return nil
			}, nil
		},
	}
}
