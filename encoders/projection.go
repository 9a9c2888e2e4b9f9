package encoders

import (
	"math"

	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// normEps is the floor of the norm in L2 normalisation, as in torch's F.normalize.
const normEps = 1e-12

// Projection maps sequences into a shared space: a linear layer on their class tokens, then
// what the space asks for (clip-mtob, section 3.1): unit rows on a sphere, m groups of n
// channels that are unit vectors on several, rows as the linear layer gives them in a
// Euclidean space. With a class token for each sphere, group k comes from token k.
//
// The parameters are weight, (C, D) or with class tokens of their own (C/m, D), one for all
// tokens, and bias.
type Projection struct {
	Space  space.Space
	NoBias bool
	// Identity leaves out the linear layer, and with it all parameters: class tokens are as
	// wide as the space.
	Identity bool
	// Activation stands behind the linear layer: tanh, or empty for none.
	Activation string
	// Gaussian starts the weight from N(0, 1/D), as clip-mtob's code does, instead of PyTorch's
	// default of a linear layer.
	Gaussian bool
}

var _ Head = Projection{}

// Classes returns how many class tokens of a sequence the projection reads.
func (p Projection) Classes() int { return p.Space.Classes() }

// Forward projects the sequences x (N*T, D) of t tokens, class tokens first: (N, C).
// Class tokens alone are sequences of T = Classes() tokens.
func (p Projection) Forward(s Scope, x *gorgonia.Node, t int) *gorgonia.Node {
	m, dim := p.Space.Groups(), p.Space.Dim
	if dim < 1 || p.Space.Check(dim) != nil {
		misuse("projection", x, "want channels that %d spheres divide, and no spheres in a Euclidean space (got %d channels)", m, dim)
	}
	n := sequences("projection", x, t)
	if t < p.Classes() {
		misuse("projection", x, "want sequences with %d class tokens (got %d tokens)", p.Classes(), t)
	}
	return normalizeIn(p.Space, p.linear(s, leading(x, p.Classes(), t)), n)
}

// normalizeIn gives the output x (n, C) of a linear layer, (n*m, C/m) with class tokens of
// their own, the norms of a space: (n, C).
func normalizeIn(sp space.Space, x *gorgonia.Node, n int) *gorgonia.Node {
	m := sp.Groups()
	switch {
	case sp.Euclid:
		return x
	case m == 1:
		return nn.L2Normalize(x, normEps)
	}
	if !sp.Tokens {
		x = layout.Reshape(x, n*m, sp.SphereDim())
	}
	return layout.Reshape(nn.L2Normalize(x, normEps), n, sp.Dim)
}

// Project implements Head: Forward on class tokens (R*m, D) alone.
func (p Projection) Project(_ *Context, s Scope, classes *gorgonia.Node) *gorgonia.Node {
	return p.Forward(s, classes, p.Classes())
}

// Dimension implements Head.
func (p Projection) Dimension() int { return p.Space.Dim }

// Rows projects every row of x (R, D) as Forward projects first tokens, with the same
// parameters: (R, C). There is no such thing with class tokens for each sphere.
func (p Projection) Rows(s Scope, x *gorgonia.Node) *gorgonia.Node {
	return p.Normalize(p.Raw(s, x))
}

// Raw implements TokenHead: Rows before what the space asks for.
func (p Projection) Raw(s Scope, x *gorgonia.Node) *gorgonia.Node {
	if p.Space.Tokens {
		misuse("projection", x, "a row is one class token of %d", p.Space.Groups())
	}
	return p.linear(s, x)
}

// Normalize implements TokenHead.
func (p Projection) Normalize(x *gorgonia.Node) *gorgonia.Node {
	return normalizeIn(p.Space, x, x.Shape()[0])
}

// Parameters returns the nodes of the parameters s+"weight" and s+"bias" (nil with
// NoBias) for tokens of width d.
func (p Projection) Parameters(s Scope, d int) (weight, bias *gorgonia.Node) {
	out := p.Space.Dim / p.Classes()
	init := LinearDefault(d)
	if p.Gaussian {
		weight = s.Param("weight", Normal(1/math.Sqrt(float64(d))), out, d)
	} else {
		weight = s.Param("weight", init, out, d)
	}
	if !p.NoBias {
		bias = s.bias(init, out)
	}
	return weight, bias
}

func (p Projection) linear(s Scope, x *gorgonia.Node) *gorgonia.Node {
	if out := p.Space.Dim / p.Classes(); p.Identity {
		if columns("projection", x) != out {
			misuse("projection", x, "without a linear layer, tokens must have the %d channels of the space", out)
		}
		return x
	}
	weight, bias := p.Parameters(s, columns("projection", x))
	x = nn.Linear(x, weight, bias)
	switch p.Activation {
	case "":
		return x
	case "tanh":
		return nn.Tanh(x)
	}
	misuse("projection", x, "activation must be tanh or empty (got %q)", p.Activation)
	return nil
}

// Classifier is a linear layer on the first token of each sequence, such as the
// match / no match head. The result is (N, Classes).
type Classifier struct {
	Classes int
}

// Forward classifies; t is the length of a sequence. The layer has PyTorch's default
// start.
func (k Classifier) Forward(s Scope, x *gorgonia.Node, t int) *gorgonia.Node {
	x = layout.StridedRows(x, 0, t, sequences("classifier", x, t))
	d := x.Shape()[1]
	init := LinearDefault(d)
	return nn.Linear(x, s.Param("weight", init, k.Classes, d), s.bias(init, k.Classes))
}

// leading returns the first m tokens of each of the sequences x (N*t, D): (N*m, D).
func leading(x *gorgonia.Node, m, t int) *gorgonia.Node {
	switch n := sequences("class tokens", x, t); m {
	case t:
		return x
	case 1:
		return layout.StridedRows(x, 0, t, n)
	}
	return layout.SequenceRows(x, t, 0, m)
}
