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

// Activated returns the activation of a name, one of LinearActivated, of x of any shape: for a
// linear layer to which something is added before it is activated.
func Activated(x *gorgonia.Node, name string) *gorgonia.Node {
	of := activation(name)
	return op.Apply(&op.Op{
		Kind: name, Args: "alone", Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(of),
		Host: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) { of.Apply(c.Out.F32[lo:hi], c.In[0].F32[lo:hi]) }
			return func() error {
				c.Engine.For(c.Out.Len(), geluGrain, body)
				return nil
			}, nil
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(activatedGrad(of), in[0], dy)}
		},
	}, x)
}

// activatedGrad returns dx for x and dy.
func activatedGrad(of vector.Activation) *op.Op {
	return &op.Op{
		Kind: of.String() + " dx", Args: "alone", Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		On: oncuda.ActivationGrad(of),
		Host: func(c *exec.Call) (exec.Step, error) {
			body := func(_, lo, hi int) { of.Grad(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi]) }
			return func() error {
				c.Engine.For(c.Out.Len(), geluGrain, body)
				return nil
			}, nil
		},
	}
}

// activation returns that of a name.
func activation(name string) vector.Activation {
	of, ok := vector.ActivationOf(name)
	if !ok {
		panic(&op.BuildError{Op: "linear", Err: fmt.Errorf("activation must be gelu, gelu_tanh, quick_gelu or silu (got %q)", name)})
	}
	return of
}
