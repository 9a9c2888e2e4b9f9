package arith

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/arith/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Square returns x*x for x of any shape.
func Square(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "square", Diff: []bool{true}, InPlace: []int{0}, On: oncuda.Elements("square"),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		Host: func(c *exec.Call) (exec.Step, error) {
			return elements(c, func(lo, hi int) {
				vector.Mul(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[0].F32[lo:hi])
			}), nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(squareGrad(), in[0], dy)}
		},
	}, x)
}

// squareGrad returns 2*x*dy for x and dy.
func squareGrad() *op.Op {
	return &op.Op{
		Kind: "square dx", Diff: []bool{false, false}, InPlace: []int{1}, On: oncuda.Elements("square_dx"),
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		Host: func(c *exec.Call) (exec.Step, error) {
			return elements(c, func(lo, hi int) {
				vector.Mul(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
				vector.Scale(c.Out.F32[lo:hi], 2, c.Out.F32[lo:hi])
			}), nil
		},
	}
}

// elements is the step of an elementwise op, whose body works on elements lo to hi.
func elements(c *exec.Call, body func(lo, hi int)) exec.Step {
	work := func(_, lo, hi int) { body(lo, hi) }
	return func() error {
		c.Engine.For(c.Out.Len(), op.ElementGrain, work)
		return nil
	}
}
