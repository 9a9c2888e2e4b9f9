package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
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

// PairAttention fuses features of images and texts by attention between the two: they are a sequence of two tokens,
// each of which attends to both, by one head of C channels (Vaswani et al. 2017, equation 1), and their mean passes
// W_o. It stands for the "cross-modal attention" of ViPMM's ablation, which says no more of it.
//
// The parameters are qkv/weight (3C, C) and qkv/bias, and out/weight (Dim, C).
type PairAttention struct {
	Dim     int     // of the result
	Dropout float64 // of the features
}

// Fuse returns (B, Dim) of features of images and texts (B, C).
func (a PairAttention) Fuse(c *Context, s Scope, images, texts *gorgonia.Node) *gorgonia.Node {
	n, channels := images.Shape()[0], pairColumns("pair attention", images, texts)
	c.given(images.Shape()[0], 1)
	x, y := c.dropout(images, a.Dropout), c.dropout(texts, a.Dropout)
	tokens := layout.Reshape(layout.ConcatColumns(x, y), 2*n, channels)                   // (2B, C)
	qkv := linear(s, "qkv", torchStarts.qkv, tokens, 3*channels)                          // (2B, 3C)
	z := attention.SelfAttention(attention.SelfArgs{QKV: qkv, Len: 2, Heads: 1, Keep: 1}) // (2B, C)
	return linearNoBias(s, "out", torchLinear, nn.MeanTokens(z, nil, 2, 0), a.Dim)        // (B, Dim)
}
