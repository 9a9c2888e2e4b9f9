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

// unary is an elementwise function of an array of any shape, with its derivative.
type unary struct {
	kind, args string
	kernel     vector.Activation // its number on the CUDA device
	grain      int               // the least number of elements worth a thread
	run        func(y, x []float32)
	// grad sets the gradient dx from x, or with ofOutput from the function's value, so that x need not be kept.
	grad     func(dx, x, dy []float32)
	ofOutput bool
}

var (
	gelu = unary{kind: "gelu", kernel: vector.ByGELU, grain: geluGrain, run: vector.GELU, grad: vector.GELUGrad}
	relu = unary{
		kind: "relu", kernel: oncuda.ReLU, grain: op.ElementGrain, ofOutput: true, run: vector.ReLU,
		grad: vector.ReLUGrad,
	}
	silu = unary{
		kind: "silu", kernel: vector.BySiLU, grain: op.ElementGrain,
		run: func(y, x []float32) { sigmoids(x, func(i int, x, s float32) { y[i] = x * s }) },
		grad: func(dx, x, dy []float32) {
			sigmoids(x, func(i int, x, s float32) { dx[i] = s * (1 + x*(1-s)) * dy[i] })
		},
	}
	tanh = unary{
		kind: "tanh", kernel: oncuda.Tanh, grain: op.ElementGrain, ofOutput: true,
		run: func(y, x []float32) {
			vector.Scale(y, 2, x)
			sigmoids(y, func(i int, _, s float32) { y[i] = 2*s - 1 })
		},
		grad: func(dx, y, dy []float32) {
			for i, y := range y {
				dx[i] = (1 - y*y) * dy[i]
			}
		},
	}
)

// geluGrain is the least number of elements worth a thread in a GELU.
const geluGrain = 4096

// GELU returns x * Phi(x) with the distribution function Phi of the standard
// normal distribution, the exact form (Hendrycks and Gimpel 2016, section 2), for x
// of any shape.
func GELU(x *gorgonia.Node) *gorgonia.Node { return op.Apply(gelu.forward(), x) }

// ReLU returns max(x, 0) for x of any shape. Its gradient at 0 is 0, as in PyTorch;
// NaN stays NaN.
func ReLU(x *gorgonia.Node) *gorgonia.Node { return op.Apply(relu.forward(), x) }

// SiLU returns x / (1 + exp(-x)) for x of any shape (Hendrycks and Gimpel 2016). With s = 1/(1 + exp(-x)) its
// derivative is s (1 + x (1 - s)).
func SiLU(x *gorgonia.Node) *gorgonia.Node { return op.Apply(silu.forward(), x) }

// Tanh returns the hyperbolic tangent y of x of any shape, to 1e-7; its derivative is 1 - y^2.
func Tanh(x *gorgonia.Node) *gorgonia.Node { return op.Apply(tanh.forward(), x) }

// Activated returns the activation of a name, one of LinearActivated, of x of any shape: for a
// linear layer to which something is added before it is activated.
func Activated(x *gorgonia.Node, name string) *gorgonia.Node {
	return op.Apply(alone(activation(name)).forward(), x)
}

// alone is an activation that no product makes.
func alone(of vector.Activation) unary {
	return unary{kind: of.String(), args: "alone", kernel: of, grain: geluGrain, run: of.Apply, grad: of.Grad}
}

// activation returns that of a name.
func activation(name string) vector.Activation {
	of, ok := vector.ActivationOf(name)
	if !ok {
		panic(&op.BuildError{Op: "linear",
			Err: fmt.Errorf("activation must be gelu, gelu_tanh, quick_gelu or silu (got %q)", name)})
	}
	return of
}

func (u unary) forward() *op.Op {
	return &op.Op{
		Kind: u.kind, Args: u.args, Diff: []bool{true}, InPlace: []int{0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		On:    oncuda.Activation(u.kernel),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), u.grain, func(_, lo, hi int) { u.run(c.Out.F32[lo:hi], c.In[0].F32[lo:hi]) })
		},
		Grad: func(in gorgonia.Nodes, out, dy *gorgonia.Node) gorgonia.Nodes {
			x := in[0]
			if u.ofOutput {
				x = out
			}
			return gorgonia.Nodes{op.Apply(u.backward(), x, dy)}
		},
	}
}

// backward returns dx for x, or the output, and dy.
func (u unary) backward() *op.Op {
	of := "x"
	if u.ofOutput {
		of = "y"
	}
	return &op.Op{
		Kind: u.kind + " dx", Args: u.args, Diff: []bool{false, false}, InPlace: []int{1, 0},
		Shape: func(in []tensor.Shape) (tensor.Shape, error) {
			return in[0].Clone(), op.Need(in[0].Eq(in[1]), "%s and dy must have one shape", of)
		},
		On: oncuda.ActivationGrad(u.kernel),
		Host: func(c *exec.Call) (exec.Step, error) {
			return c.For(c.Out.Len(), u.grain, func(_, lo, hi int) {
				u.grad(c.Out.F32[lo:hi], c.In[0].F32[lo:hi], c.In[1].F32[lo:hi])
			})
		},
	}
}

// sigmoids calls f with each of the values of x and its sigmoid. f may write where x lies.
func sigmoids(x []float32, f func(i int, x, s float32)) {
	const block = 256 // on the stack
	var s [block]float32
	for lo := 0; lo < len(x); lo += block {
		n := min(block, len(x)-lo)
		vector.Scale(s[:n], -1, x[lo:lo+n])
		vector.Exp(s[:n], s[:n])
		for i := range n {
			f(lo+i, x[lo+i], 1/(1+s[i]))
		}
	}
}
