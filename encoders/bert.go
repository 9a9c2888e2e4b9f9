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

// Text encodes token ids (R*L) of texts with lengths (R) into (R*L, D), or with at
// into the states at M places alone, (M, D). Tokens beyond a text's length are not
// attended to; their rows mean nothing.
func (b BERT) Text(c *Context, s Scope, ids, lengths *gorgonia.Node, l int, at *Places) *gorgonia.Node {
	e := s.In("embeddings")
	x := ops.Embed(e.Param("word/weight", bertInit, b.Vocab, b.Width), ids)        // (R*L, D)
	x = ops.AddPositions(x, e.Param("token_type/weight", bertInit, 2, b.Width), 1) // type 0 everywhere
	x = ops.AddPositions(x, e.Param("position/weight", bertInit, b.Positions, b.Width), l)
	x = c.dropout(norm(e, "norm", x, bertEps), b.Dropout)
	if at != nil && b.Layers == 0 {
		return at.of(x)
	}
	for i := range b.Layers {
		layer := s.Layer("layers", i)
		s.block(func() {
			if at != nil && i == b.Layers-1 {
				x = b.selfAttentionAt(c, layer, x, lengths, l, at)
			} else {
				x = b.selfAttention(c, layer, x, lengths, l)
			}
			x = b.feedForward(c, layer, x)
		})
	}
	return x
}

// Pairs says which text and which image each of the R rows of the fusion layers
// reads, as int32 indices (R). nil means its own: row r reads text or image r.
type Pairs struct {
	Texts, Images *gorgonia.Node
}

// Fusion runs the fusion layers over pairs of text states x (N*L, D) with lengths (N)
// and image tokens (K*T, Dimage). The result is (R*L, D), or with at the states at M
// places of these rows, (M, D).
//
// What rows share is computed once: an image is projected to keys and values once,
// and a text attends to itself in the first layer once, however many pairs they are
// in. With dropout, the pairs of a text therefore share the masks of that attention,
// as they share those of the text layers.
func (b BERT) Fusion(c *Context, s Scope, x, lengths, images *gorgonia.Node, p Pairs, at *Places, l, t int) *gorgonia.Node {
	if b.FusionLayers < 1 {
		misuse("fusion", x, "want at least one fusion layer (got %d)", b.FusionLayers)
	}
	for i := range b.FusionLayers {
		layer := s.Layer("layers", b.Layers+i)
		last := at != nil && i == b.FusionLayers-1
		s.block(func() {
			if last && i > 0 {
				x = b.selfAttentionAt(c, layer, x, lengths, l, at)
			} else {
				x = b.selfAttention(c, layer, x, lengths, l)
			}
			if i == 0 && p.Texts != nil {
				x, lengths = ops.GatherRows(x, p.Texts, l), ops.GatherInts(lengths, p.Texts) // (R*L, D), (R)
			}
			if last && i == 0 {
				x = at.of(x)
			}
			if last {
				x = b.crossAttentionAt(c, layer, x, images, p.Images, at, t)
			} else {
				x = b.crossAttention(c, layer, x, images, p.Images, l, t)
			}
			x = b.feedForward(c, layer, x)
		})
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

// selfAttentionAt is selfAttention for the queries at some places: (M, D).
func (b BERT) selfAttentionAt(c *Context, s Scope, x, lengths *gorgonia.Node, l int, at *Places) *gorgonia.Node {
	s = s.In("attention")
	sequences("attention", x, l)
	y := at.of(x)
	q := linearPart(s, "qkv", bertInit, Zeros, y, 0, b.Width, 3*b.Width)          // (M, D)
	kv := linearPart(s, "qkv", bertInit, Zeros, x, b.Width, 2*b.Width, 3*b.Width) // (N*L, 2D)
	bits := c.bits(y.Shape()[0]*b.Heads, l, b.Dropout)
	h := ops.CrossAttention(q, kv, at.Sequences, at.each(lengths), bits, 1, l, b.Heads, keep(b.Dropout))
	return b.output(c, s, h, y)
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

// crossAttentionAt is crossAttention for states x (M, D) at some places, each a
// sequence of one query.
func (b BERT) crossAttentionAt(c *Context, s Scope, x, images, index *gorgonia.Node, at *Places, t int) *gorgonia.Node {
	if index = at.each(index); index == nil {
		index = at.Sequences
	}
	return b.crossAttention(c, s, x, images, index, 1, t)
}

func (b BERT) feedForward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	s = s.In("ffn")
	h := linearGELU(s, "intermediate", bertInit, Zeros, x, defaultTo(b.MLP, 4*b.Width))
	return b.output(c, s, h, x)
}

// output is BERT's block end: LN(x + dropout(dense(h))).
func (b BERT) output(c *Context, s Scope, h, x *gorgonia.Node) *gorgonia.Node {
	h = linear(s, "output", bertInit, Zeros, h, b.Width)
	bits := c.bits(h.Shape()[0], b.Width, b.Dropout)
	_, y := addNorm(s, "norm", h, x, bits, keep(b.Dropout), bertEps)
	return y
}

// MLMHead maps states (M, D) to vocabulary logits (M, V): dense, GELU, layer norm,
// and a decoder that is the word embedding plus a bias of its own.
func (b BERT) MLMHead(s Scope, x *gorgonia.Node) *gorgonia.Node {
	h := s.In("mlm")
	x = linearGELU(h, "dense", bertInit, Zeros, x, b.Width)
	x = norm(h, "norm", x, bertEps)
	word := s.Param("embeddings/word/weight", bertInit, b.Vocab, b.Width)
	return ops.Linear(x, word, h.Param("bias", Zeros, b.Vocab))
}
