package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// PairHead tells what two sentences are to each other.
//
// Of vectors u and v of two sentences (Reimers and Gurevych 2019, "Sentence-BERT", section 3) logits are W (u, v,
// |u-v|) + b, with a bias as in the published code, and a score is the cosine of u and v. Of one vector x of both
// (Devlin et al. 2019, "BERT", section 4), the state of their first token, they are W dropout(tanh(P x + p)) + b.
//
// The parameters are classifier/weight and classifier/bias, of one vector pooler/weight and pooler/bias, all N(0,
// .02^2) and 0 at the start, and of a cosine none.
type PairHead struct {
	Classes int     // 0: a score
	Dropout float64 // of what the pooler gives
}

// Separate gives rows u and v (R, D) their logits (R, Classes), or scores (R, 1).
func (h PairHead) Separate(s Scope, u, v *gorgonia.Node) *gorgonia.Node {
	columns("pair head", u)
	if h.Classes == 0 {
		return layout.Reshape(similarity.RowProducts(nn.L2Normalize(u, normEps), nn.L2Normalize(v, normEps)),
			u.Shape()[0], 1)
	}
	rest := arith.Combine([]float32{1, -1}, u, v)
	apart := arith.Add(nn.ReLU(rest), nn.ReLU(arith.Combine([]float32{-1}, rest))) // |u-v|
	return linear(s, "classifier", from(bertInit), layout.ConcatColumns(layout.ConcatColumns(u, v), apart), h.Classes)
}

// Joint gives rows x (R, D) their logits (R, Classes), or scores (R, 1).
func (h PairHead) Joint(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	c.given(x.Shape()[0], 1)
	pooled := c.dropout(nn.Tanh(linear(s, "pooler", from(bertInit), x, columns("pair head", x))), h.Dropout)
	return linear(s, "classifier", from(bertInit), pooled, max(1, h.Classes))
}
