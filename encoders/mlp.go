package encoders

import (
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// MLP is an alignment head over the features of a frozen encoder: one hidden layer
// with dropout after its activation, then L2 normalisation (GeRA's network; its paper
// leaves the activation open). A linear one has no hidden layer.
type MLP struct {
	Linear     bool   // fc1 maps to C, and what the other fields but Out say is not read
	Hidden     int    // H, width of the hidden layer
	Out        int    // C
	Activation string // gelu or relu; empty: gelu
	Dropout    float64
}

// Forward maps features x (N, D) to unit rows (N, C).
func (m MLP) Forward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	if m.Linear && m.Out > 0 {
		return nn.L2Normalize(linear(s, "fc1", torchLinear, x, m.Out), normEps) // (N, C)
	}
	if m.Hidden < 1 || m.Out < 1 {
		misuse("mlp", x, "want a hidden layer and an output of at least 1 (got %d and %d)", m.Hidden, m.Out)
	}
	var h *gorgonia.Node // (N, H)
	switch {
	case m.Activation == "relu":
		h = nn.ReLU(linear(s, "fc1", torchLinear, x, m.Hidden))
	case m.Activation != "" && m.Activation != "gelu":
		misuse("mlp", x, "activation must be gelu or relu (got %q)", m.Activation)
	case m.Dropout == 0:
		h = linearGELU(s, "fc1", torchLinear, x, m.Hidden)
	default: // apart, so that dropout takes over the memory of the activation
		h = nn.GELU(linear(s, "fc1", torchLinear, x, m.Hidden))
	}
	h = c.dropout(h, m.Dropout)
	return nn.L2Normalize(linear(s, "fc2", torchLinear, h, m.Out), normEps) // (N, C)
}

var _ Head = MLP{}

// Classes implements Head: a feature row is one class token.
func (m MLP) Classes() int { return 1 }

// Project implements Head by Forward.
func (m MLP) Project(c *Context, s Scope, classes *gorgonia.Node) *gorgonia.Node {
	return m.Forward(c, s, classes)
}

// Dimension implements Head.
func (m MLP) Dimension() int { return m.Out }
