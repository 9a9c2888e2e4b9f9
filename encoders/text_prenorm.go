package encoders

import (
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// PreNormText is a text transformer with pre-norm blocks and a norm after the last one: the
// text side of CLIP (Radford et al. 2021), where a word sees itself and the words before it,
// and of SigLIP (Zhai et al. 2023), where all see all.
type PreNormText struct {
	TextOptions
	Vocab  int // V
	Causal bool
	// Behind: a learned token stands behind all L places of a text, for the text. As in open_clip's CoCa it and the
	// words see the words and the first place of padding; itself it sees where there is no padding.
	Behind bool
	Metric AttentionMetric // of self-attention
	// TorchStart is that of BERT.
	TorchStart bool
}

var _ TextEncoder = PreNormText{}

func (p PreNormText) classes() int { return 1 }
func (p PreNormText) width() int   { return p.Width }

// Text encodes texts into (R*L, D), or with at into the states at M places alone, (M, D).
// Tokens beyond a text's length are not attended to, unless Lengths is nil. With a causal
// mask a place of at is the last one of its text.
func (p PreNormText) Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node {
	return p.encode(c, s, a, at, false)
}

// encode is Text, with all also of the token behind the words: (R*(L+1), D).
func (p PreNormText) encode(c *Context, s Scope, a TextArgs, at *Places, all bool) *gorgonia.Node {
	if p.Layers < 1 {
		misuse("text", a.IDs, "want at least one layer (got %d)", p.Layers)
	}
	s = s.transformer(p.Layers)
	first := s.Layer("layers", 0)
	c.given(a.IDs.Shape()[0], a.Len)
	words, x := a.Len, p.embed(c, s, a)
	if p.Behind {
		a.Len, a.Lengths = a.Len+1, layout.AddInt(a.Lengths, 1)
	}
	x = prompted(0, x, first.prompt(0, p.Width), a.Len, 0)
	y := norm(first, "norm1", x, float32(p.Eps))
	for i := range p.Layers {
		layer := s.Layer("layers", i)
		if prompts := layer.prompt(i, p.Width); i > 0 && prompts != nil {
			x, y = prompted(i, x, prompts, a.Len, 0), prompted(i, y, norm(layer, "norm1", prompts, float32(p.Eps)),
				a.Len, 0)
		}
		s.tap.tokens(i, y, s.prompts()+a.Len)
		s.block(func() {
			if i == p.Layers-1 {
				x, y = p.layer(c, s, i, x, y, a, at)
			} else {
				x, y = p.layer(c, s, i, x, y, a, nil)
			}
		})
	}
	if at == nil {
		y = unprompted(y, a.Len, s.prompts())
	}
	if at == nil && p.Behind && !all {
		y = layout.SequenceRest(y, a.Len, words, 1)
	}
	return y
}

// TextClasses encodes texts as Text does, with their first tokens, or those behind the words, (R, D), beside them.
// Without all, states is nil.
func (p PreNormText) TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node) {
	switch l := a.Len + 1; {
	case p.Behind && all:
		x := p.encode(c, s, a, nil, true)
		return layout.SequenceRest(x, l, a.Len, 1), layout.SequenceRows(x, l, a.Len, 1)
	case p.Behind:
		return nil, p.Text(c, s, a, lastPlaces(layout.AddInt(layout.FullLengths(a.IDs, a.Len), 1), l))
	}
	states = p.Text(c, s, a, nil)
	classes = leading(states, 1, a.Len)
	if !all {
		states = nil
	}
	return states, classes
}

// embed returns the embeddings of words, and of the token behind them, with their positions: (R*L, D).
func (p PreNormText) embed(c *Context, s Scope, a TextArgs) *gorgonia.Node {
	s = s.In("embeddings").As(Traits{Front: true})
	x := nn.Embed(s.Param("word/weight", bertInit, p.Vocab, p.Width), a.IDs) // (R*L, D)
	l := a.Len
	if p.Behind {
		class := nn.RepeatRows(s.Param("class", bertInit, 1, p.Width), sequences("text", x, l)) // (R, D)
		x, l = layout.InsertRows(x, class, l, 1, l), l+1                                        // (R*(L+1), D)
	}
	x = nn.AddPositions(x, s.Param("position/weight", positionInit(p.TorchStart), p.Positions, p.Width), l)
	return c.dropout(x, p.Dropout)
}

// layer is x + Attention(LN(x)), then x + MLP(LN(x)), for x (R*L, D) and y = LN(x). It returns
// the new x, or with at those at the places, and the layer norm that follows: the next layer's
// first, or the final one.
func (p PreNormText) layer(c *Context, s Scope, i int, x, y *gorgonia.Node, a TextArgs, at *Places) (_,
	_ *gorgonia.Node) {
	b, start := s.Layer("layers", i), p.starts()
	in := b.In("attention")
	t, lengths := s.prompts()+a.Len, withPrompts(a.Lengths, s.prompts())
	var h *gorgonia.Node
	if at == nil {
		qkv := linear(in, "qkv", start.qkv, y, 3*p.Width) // (R*L, 3D)
		qkv = p.Metric.fold(in, qkv, p.Width, p.Width, p.Heads)
		bits := c.bits(sequences("attention", y, t)*p.Heads*t, t, p.Dropout)
		h = attention.SelfAttention(attention.SelfArgs{QKV: qkv, Lengths: lengths, Bits: bits, Causal: p.Causal, Len: t,
			Heads: p.Heads, Keep: keep(p.Dropout)})
	} else {
		// The last token of a text sees all of it, causal or not.
		q := linearPart(in, "qkv", start.qkv, at.of(unprompted(y, a.Len, s.prompts())), 0, p.Width, 3*p.Width) // (M, D)
		// (R*L, 2D)
		kv := linearPart(in, "qkv", start.qkv, y, p.Width, 2*p.Width, 3*p.Width)
		kv = p.Metric.fold(in, kv, 0, p.Width, p.Heads)
		bits := c.bits(q.Shape()[0]*p.Heads, t, p.Dropout)
		h = attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, Index: at.Sequences, Lengths: at.each(lengths),
			Bits: bits, QueryLen: 1, KeyLen: t, Heads: p.Heads, Keep: keep(p.Dropout)})
		x = at.of(unprompted(x, a.Len, s.prompts()))
	}
	h = in.bottleneck(linear(in, "output", start.output, h, p.Width))
	x, y = addNorm(b, "norm2", h, x, c.bits(h.Shape()[0], p.Width, p.Dropout), keep(p.Dropout), float32(p.Eps))

	f := b.In("ffn")
	h = linearActivated(f, "intermediate", start.mlp, y, defaultTo(p.MLP, 4*p.Width), p.Activation)
	h = f.bottleneck(linear(f, "output", start.mlp, h, p.Width))
	next, name := s, "norm"
	if i+1 < p.Layers {
		next, name = s.Layer("layers", i+1), "norm1"
	}
	return addNorm(next, name, h, x, c.bits(h.Shape()[0], p.Width, p.Dropout), keep(p.Dropout), float32(p.Eps))
}

// starts starts the parts of a layer.
func (p PreNormText) starts() starts { return textStarts(p.TorchStart) }
