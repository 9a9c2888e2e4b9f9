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
	d := x.Shape()[1]
	first := ops.StridedRows(x, 0, t, x.Shape()[0]/t) // (N, D)
	init := LinearDefault(d)
	w := ops.Linear(first, s.Param("weight", init, p.Dim, d), s.Param("bias", init, p.Dim))
	return ops.L2Normalize(w, normEps)
}

// Classifier is a linear layer on the first token of each sequence, such as the
// match / no match head. The result is (N, Classes).
type Classifier struct {
	Classes int
}

// Forward classifies; t is the length of a sequence.
func (k Classifier) Forward(s Scope, x *gorgonia.Node, t int) *gorgonia.Node {
	d := x.Shape()[1]
	first := ops.StridedRows(x, 0, t, x.Shape()[0]/t)
	init := LinearDefault(d)
	return ops.Linear(first, s.Param("weight", init, k.Classes, d), s.Param("bias", init, k.Classes))
}
