package encoders

import (
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

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
