package nn

import (
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// siluBlock is how many values a SiLU works on at a time, on the stack.
const siluBlock = 256

// SiLU returns x / (1 + exp(-x)) for x of any shape (Hendrycks and Gimpel 2016).
func SiLU(x *gorgonia.Node) *gorgonia.Node {
	return op.Apply(&op.Op{
		Kind: "silu", Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(vector.BySiLU),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				sigmoids(lo, hi, c.In[0].F32, func(i int, x, s float32) { c.Out.F32[i] = x * s })
			})
		},
		Grad: func(in gorgonia.Nodes, _, dy *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{op.Apply(siluGrad(), in[0], dy)}
		},
	}, x)
}

// siluGrad returns dx = s (1 + x (1 - s)) dy with s = 1/(1 + exp(-x)).
func siluGrad() *op.Op {
	return &op.Op{
		Kind: "silu dx", Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "x and dy must have one shape")
		},
		On: oncuda.ActivationGrad(vector.BySiLU),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), op.ElementGrain, func(_, lo, hi int) {
				sigmoids(lo, hi, c.In[0].F32, func(i int, x, s float32) { c.Out.F32[i] = s * (1 + x*(1-s)) * c.In[1].F32[i] })
			})
		},
	}
}

// sigmoids calls f with each of the values lo to hi of x and its sigmoid. f may write where
// x lies.
func sigmoids(lo, hi int, x []float32, f func(i int, x, s float32)) {
	var s [siluBlock]float32
	for ; lo < hi; lo += siluBlock {
		n := min(siluBlock, hi-lo)
		vector.Scale(s[:n], -1, x[lo:lo+n])
		vector.Exp(s[:n], s[:n])
		for i := range n {
			f(lo+i, x[lo+i], 1/(1+s[i]))
		}
	}
}
