package nn

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/expr"
	"github.com/geoalign/geoalign/ops/nn/internal/oncuda"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// geluGrain is the least number of elements worth a thread in a GELU.
const geluGrain = 4096

// GELU returns x * Phi(x) with the distribution function Phi of the standard
// normal distribution, the exact form (Hendrycks and Gimpel 2016, section 2), for x
// of any shape.
func GELU(x *gorgonia.Node) *gorgonia.Node { return alone(x, vector.ByGELU) }

// ReLU returns max(x, 0) for x of any shape. Its gradient at 0 is 0, as in PyTorch;
// NaN stays NaN.
func ReLU(x *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "relu", Value: expr.X(0).ReLU()}, x)
}

// SiLU returns x / (1 + exp(-x)) for x of any shape (Hendrycks and Gimpel 2016). With s = 1/(1 + exp(-x)) its
// derivative is s (1 + x (1 - s)).
func SiLU(x *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "silu", Value: expr.X(0).SiLU()}, x)
}

// Tanh returns the hyperbolic tangent y of x of any shape, to 1e-7; its derivative is 1 - y^2.
func Tanh(x *gorgonia.Node) *gorgonia.Node {
	return expr.Apply(expr.Op{Kind: "tanh", Value: expr.X(0).Tanh()}, x)
}

// Activated returns the activation of a name, one of LinearActivated, of x of any shape: for a
// linear layer to which something is added before it is activated.
func Activated(x *gorgonia.Node, name string) *gorgonia.Node {
	return alone(x, activation(name))
}

// alone applies an activation that no product makes.
func alone(x *gorgonia.Node, of vector.Activation) *gorgonia.Node {
	return expr.Apply(expr.Op{
		Kind: of.String(), Value: expr.X(0).Activated(of), On: oncuda.Activation(of), GradOn: oncuda.ActivationGrad(of),
	}, x)
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
