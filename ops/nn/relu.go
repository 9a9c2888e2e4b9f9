package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// reluGrain is the least number of elements worth a thread in a ReLU.
const reluGrain = 16384

// ReLU returns max(x, 0) for x of any shape. Its gradient at 0 is 0, as in PyTorch;
// NaN stays NaN.
func ReLU(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "relu", Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(oncuda.ReLU),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), reluGrain, func(_, lo, hi int) {
				vector.ReLU(c.Out.F32[lo:hi], c.In[0].F32[lo:hi])
			})
		},
		// With the output, x need not be kept.
		Grad: func(_ gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(reluGrad(), out, dy)}
		},
	}, x)
}

// reluGrad returns dx for the output y and dy.
func reluGrad() *op.Op {
	return &op.Op{
		Kind: "relu dx", Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "y and dy must have one shape")
		},
		On: oncuda.ActivationGrad(oncuda.ReLU),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), reluGrain, func(_, lo, hi int) {
				vector.ReLUGrad(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			})
		},
	}
}
