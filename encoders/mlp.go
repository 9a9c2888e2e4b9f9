package encoders

import (
	"fmt"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// MLP is a head of hidden layers of one width and a linear layer, then what the space asks for, over
// the features of a frozen encoder or over the tokens of a tower. With one hidden layer it is GeRA's
// network, whose paper leaves the activation open, and with tanh the head of ViPMM (section 4.2).
// Hidden layer i is
//
//	h_i = dropout(act(norm_i(fc_i(h_i-1)))) [+ h_i-1]
//
// The skip connection is there where both sides have one width: around the first hidden
// layer only for features as wide as it is, never around the last linear layer.
//
// Parameters are fc1/weight, fc1/bias, fc2/weight and so on, with LayerNorm norm1/weight,
// norm1/bias and so on, and shared/weight and shared/bias of rows that are mapped to Shared first.
type MLP struct {
	Space      space.Space
	Shared     int    // width that rows of another width are mapped to by a linear layer first; 0: none
	Layers     int    // hidden layers; 0: one linear layer is all
	Hidden     int    // H, width of the hidden layers
	Activation string // gelu, relu, silu or tanh; empty: gelu
	Dropout    float64
	Residual   bool // skip connections around hidden layers of equal width
	LayerNorm  bool // of each hidden layer, before its activation
}

// mlpNormEps is PyTorch's default of a layer norm.
const mlpNormEps = 1e-5

// Forward maps features x (N, D) to rows (N, C).
func (m MLP) Forward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	return m.Normalize(m.raw(c, s, x))
}

// raw is Forward before what the space asks for.
func (m MLP) raw(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	m.check(x)
	c.given(x.Shape()[0], 1)
	if m.Shared > 0 && columns("mlp", x) != m.Shared {
		x = linear(s, "shared", torchLinear, x, m.Shared) // (N, Shared)
	}
	for i := range m.Layers {
		y := m.hidden(c, s, i+1, x) // (N, H)
		if m.Residual && x.Shape().Eq(y.Shape()) {
			y = arith.Add(x, y)
		}
		x = y
	}
	return linear(s, fmt.Sprintf("fc%d", m.Layers+1), torchLinear, x, m.Space.Dim) // (N, C)
}

// Raw implements TokenHead, for heads without dropout.
func (m MLP) Raw(s Scope, x *gorgonia.Node) *gorgonia.Node {
	if m.Dropout > 0 {
		misuse("mlp", x, "tokens are mapped without dropout (got %g)", m.Dropout)
	}
	return m.raw(&Context{}, s, x)
}

// Normalize implements TokenHead.
func (m MLP) Normalize(x *gorgonia.Node) *gorgonia.Node {
	return normalizeIn(m.Space, x, x.Shape()[0])
}

// Rows maps every row of x (R, D) as Project maps a class token: (R, C).
func (m MLP) Rows(s Scope, x *gorgonia.Node) *gorgonia.Node { return m.Normalize(m.Raw(s, x)) }

// check refuses what no head can be made of.
func (m MLP) check(x *gorgonia.Node) {
	columns("mlp", x)
	switch {
	case m.Layers < 0:
		misuse("mlp", x, "want no hidden layers or some (got %d)", m.Layers)
	case m.Layers > 0 && m.Hidden < 1 || m.Space.Dim < 1:
		misuse("mlp", x, "want hidden layers and an output of at least 1 (got %d and %d)", m.Hidden, m.Space.Dim)
	case m.Space.Tokens:
		misuse("mlp", x, "a feature is one class token of %d: use another space", m.Space.Groups())
	}
	if err := m.Space.Check(m.Space.Dim); err != nil {
		misuse("mlp", x, "%v", err)
	}
}

// hidden is hidden layer i, without its skip connection.
func (m MLP) hidden(c *Context, s Scope, i int, x *gorgonia.Node) *gorgonia.Node {
	name := fmt.Sprintf("fc%d", i)
	// Apart from its linear layer where dropout follows.
	if m.gelu() && m.Dropout == 0 && !m.LayerNorm {
		return linearGELU(s, name, torchLinear, x, m.Hidden)
	}
	h := linear(s, name, torchLinear, x, m.Hidden)
	if m.LayerNorm {
		h = norm(s, fmt.Sprintf("norm%d", i), h, mlpNormEps)
	}
	switch {
	case m.gelu():
		return c.geluDropout(h, m.Dropout)
	case m.Activation == "relu":
		h = nn.ReLU(h)
	case m.Activation == "silu":
		h = nn.SiLU(h)
	case m.Activation == "tanh":
		h = nn.Tanh(h)
	default:
		misuse("mlp", x, "activation must be gelu, relu, silu or tanh (got %q)", m.Activation)
	}
	return c.dropout(h, m.Dropout)
}

func (m MLP) gelu() bool { return m.Activation == "" || m.Activation == "gelu" }

var _ TokenHead = MLP{}

// Classes implements Head: a feature row is one class token.
func (m MLP) Classes() int { return 1 }

// Project implements Head by Forward.
func (m MLP) Project(c *Context, s Scope, classes *gorgonia.Node) *gorgonia.Node {
	return m.Forward(c, s, classes)
}

// Dimension implements Head.
func (m MLP) Dimension() int { return m.Space.Dim }
