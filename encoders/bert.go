package encoders

import (
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// bertEps is the epsilon of BERT's layer norms.
const bertEps = 1e-12

// BERT is the text side of ALBEF (Li et al. 2021): one post-norm transformer whose
// first layers read text alone and whose last layers also attend to an image.
type BERT struct {
	Vocab        int // V
	Positions    int // size of the position table, at least L
	Layers       int // text layers, numbered from 0
	FusionLayers int // layers with cross-attention, numbered after the text layers
	Width        int // D
	Heads        int
	MLP          int     // hidden width of the feed-forward blocks; 0 means 4*Width
	Dropout      float64 // of embeddings, block outputs and attention probabilities
}

// bertInit is the reference's init of everything that no checkpoint gives.
var bertInit = Normal(.02)

// Text encodes token ids (R*L) of texts with lengths (R) into (R*L, D). Tokens
// beyond a text's length are not attended to; their rows mean nothing.
func (b BERT) Text(c *Context, s Scope, ids, lengths *gorgonia.Node, l int) *gorgonia.Node {
	e := s.In("embeddings")
	x := ops.Embed(e.Param("word/weight", bertInit, b.Vocab, b.Width), ids)        // (R*L, D)
	x = ops.AddPositions(x, e.Param("token_type/weight", bertInit, 2, b.Width), 1) // type 0 everywhere
	x = ops.AddPositions(x, e.Param("position/weight", bertInit, b.Positions, b.Width), l)
	x = c.dropout(norm(e, "norm", x, bertEps), b.Dropout)
	for i := range b.Layers {
		layer := s.Layer("layers", i)
		x = b.selfAttention(c, layer, x, lengths, l)
		x = b.feedForward(c, layer, x)
	}
	return x
}

// Fusion runs the fusion layers over text states x (R*L, D) with lengths (R).
// Row r attends to the image tokens of sequence index[r] among images (N*T, Dimage);
// index nil means its own, N == R. An image is projected to keys and values once,
// however many texts attend to it. The result is (R*L, D).
func (b BERT) Fusion(c *Context, s Scope, x, lengths, images, index *gorgonia.Node, l, t int) *gorgonia.Node {
	for i := range b.FusionLayers {
		layer := s.Layer("layers", b.Layers+i)
		x = b.selfAttention(c, layer, x, lengths, l)
		x = b.crossAttention(c, layer, x, images, index, l, t)
		x = b.feedForward(c, layer, x)
	}
	return x
}

func (b BERT) selfAttention(c *Context, s Scope, x, lengths *gorgonia.Node, l int) *gorgonia.Node {
	s = s.In("attention")
	rows := sequences("attention", x, l)
	qkv := linear(s, "qkv", bertInit, Zeros, x, 3*b.Width)
	bits := c.bits(rows*b.Heads*l, l, b.Dropout)
	h := ops.SelfAttention(qkv, lengths, bits, l, b.Heads, keep(b.Dropout))
	return b.output(c, s, h, x)
}

func (b BERT) crossAttention(c *Context, s Scope, x, images, index *gorgonia.Node, l, t int) *gorgonia.Node {
	s = s.In("crossattention")
	rows := sequences("crossattention", x, l)
	q := linear(s, "query", bertInit, Zeros, x, b.Width)      // (R*L, D)
	kv := linear(s, "kv", bertInit, Zeros, images, 2*b.Width) // (N*T, 2D)
	bits := c.bits(rows*b.Heads*l, t, b.Dropout)
	h := ops.CrossAttention(q, kv, index, nil, bits, l, t, b.Heads, keep(b.Dropout))
	return b.output(c, s, h, x)
}

func (b BERT) feedForward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	s = s.In("ffn")
	h := ops.GELU(linear(s, "intermediate", bertInit, Zeros, x, defaultTo(b.MLP, 4*b.Width)))
	return b.output(c, s, h, x)
}

// output is BERT's block end: LN(x + dropout(dense(h))).
func (b BERT) output(c *Context, s Scope, h, x *gorgonia.Node) *gorgonia.Node {
	h = c.dropout(linear(s, "output", bertInit, Zeros, h, b.Width), b.Dropout)
	return norm(s, "norm", ops.Add(h, x), bertEps)
}

// MLMHead maps states (M, D) to vocabulary logits (M, V): dense, GELU, layer norm,
// and a decoder that is the word embedding plus a bias of its own.
func (b BERT) MLMHead(s Scope, x *gorgonia.Node) *gorgonia.Node {
	h := s.In("mlm")
	x = ops.GELU(linear(h, "dense", bertInit, Zeros, x, b.Width))
	x = norm(h, "norm", x, bertEps)
	word := s.Param("embeddings/word/weight", bertInit, b.Vocab, b.Width)
	return ops.Linear(x, word, h.Param("bias", Zeros, b.Vocab))
}
