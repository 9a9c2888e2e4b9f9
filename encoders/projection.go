package encoders

import (
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// normEps is the floor of the norm in L2 normalisation, as in torch's F.normalize.
const normEps = 1e-12

// Projection maps the first token of each of the sequences x (N*T, D) into the
// shared space: a linear layer, then L2 normalisation. The result is (N, C).
type Projection struct {
	Dim int // C
}

// Forward projects; t is the length of a sequence.
func (p Projection) Forward(s Scope, x *gorgonia.Node, t int) *gorgonia.Node {
	return ops.L2Normalize(firstToken("projection", s, x, t, p.Dim), normEps)
}

// Tokens projects every row of x (R, D) as Forward projects first tokens, with the same
// parameters: (R, C).
func (p Projection) Tokens(s Scope, x *gorgonia.Node) *gorgonia.Node {
	return ops.L2Normalize(linearDefault(s, x, p.Dim), normEps)
}

// Classifier is a linear layer on the first token of each sequence, such as the
// match / no match head. The result is (N, Classes).
type Classifier struct {
	Classes int
}

// Forward classifies; t is the length of a sequence.
func (k Classifier) Forward(s Scope, x *gorgonia.Node, t int) *gorgonia.Node {
	return firstToken("classifier", s, x, t, k.Classes)
}

// firstToken is a linear layer with PyTorch's default start (1.3.5) on the first
// token of each of the sequences x (N*T, D): (N, out).
func firstToken(block string, s Scope, x *gorgonia.Node, t, out int) *gorgonia.Node {
	return linearDefault(s, ops.StridedRows(x, 0, t, sequences(block, x, t)), out)
}

// linearDefault is a linear layer with PyTorch's default start: (R, out) for x (R, D).
func linearDefault(s Scope, x *gorgonia.Node, out int) *gorgonia.Node {
	d := x.Shape()[1]
	init := LinearDefault(d)
	return ops.Linear(x, s.Param("weight", init, out, d), s.Param("bias", init, out))
}
