package encoders

import (
	"cmp"

	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// bertEps is the epsilon of BERT's layer norms, unless Eps says other.
const bertEps = 1e-12

// BERT is the text side of ALBEF (Li et al. 2021): one post-norm transformer whose
// first layers read text alone and whose last layers also attend to an image. With the
// options below and no fusion layers it is the text tower of clip-mtob's dual encoder
// (its section 3.1), whose layers are those of PyTorch's nn.TransformerEncoder.
type BERT struct {
	TextOptions
	Vocab int // V
	// Pictures is how many a text is read with; 0 means 1. With 2 each fusion layer is two: see pictures.go.
	Pictures int

	// Classes is m, the number of class tokens of TextClasses; 0 means 1. All of them
	// are the first id of a text again, told apart by their positions 0..m-1 alone, and
	// words have the positions from m on. So Positions is at least
	// L+m-1.
	Classes int
	// TokenBlocks is how many of the last text layers the class tokens after the first
	// one pass; 0 means all.
	TokenBlocks int

	// Pad is the id of padding, whose embedding moves by no text: masked language modelling may
	// draw it as a random word (BERT's padding_idx). -1: there is none.
	Pad int

	NoTokenType bool // no embedding of the token type
	FinalNorm   bool // a layer norm after the text layers, norm
	// Relative is the number of buckets of a bias of attention by the distance of two tokens,
	// one for all layers (MPNet, Song et al. 2020); 0: none. See attention.RelativeBias.
	Relative int
	// Metric is that of the self-attention of text layers and fusion layers, FusionMetric that of the cross-attention
	// of the latter.
	Metric, FusionMetric AttentionMetric
	// TorchStart starts the layers from PyTorch's defaults, words from N(0, .02^2) and
	// positions from N(0, .01^2) as CLIP does, instead of all from N(0, .02^2).
	TorchStart bool
}

// farthest is the distance from which on all tokens have one bias of attention (MPNet).
const farthest = 128

// bertInit is BERT's init, which ALBEF keeps for everything that no checkpoint gives.
var bertInit = Normal(.02)

var _ TextEncoder = BERT{}

func (b BERT) classes() int { return max(1, b.Classes) }
func (b BERT) width() int   { return b.Width }

func (b BERT) eps() float32 { return float32(cmp.Or(b.Eps, bertEps)) }

// starts starts the parts of a layer.
func (b BERT) starts() starts { return textStarts(b.TorchStart) }

// textStarts starts the parts of a layer of a text transformer.
func textStarts(torch bool) starts {
	if torch {
		return torchStarts
	}
	return sameStarts(bertInit)
}

// positionInit starts positions of texts.
func positionInit(torch bool) Init {
	if torch {
		return Normal(.01)
	}
	return bertInit
}

// TextArgs are R texts of L places.
type TextArgs struct {
	IDs     *gorgonia.Node // (R*L) int32, token ids
	Lengths *gorgonia.Node // (R) int32, tokens of each text that are no padding
	Len     int            // L
	// Segments (R*L) int32 are the types of tokens, 0 or 1, of encoders that have types; nil: all are 0.
	Segments *gorgonia.Node
}

// Text encodes texts into (R*L, D), or with at into the states at M places alone, (M, D).
// Tokens beyond a text's length are not attended to; their rows mean nothing. Texts have
// one class token each, whatever Classes says, and the same positions as in TextClasses.
func (b BERT) Text(c *Context, s Scope, a TextArgs, at *Places) *gorgonia.Node {
	_, x := b.text(c, s, a, at)
	return x
}

// firstLast returns the states behind the first layer and those of Text: (R*L, D) each. There is at least one layer.
func (b BERT) firstLast(c *Context, s Scope, a TextArgs) (first, last *gorgonia.Node) {
	if b.Layers < 1 {
		misuse("text", a.IDs, "want at least one layer (got %d)", b.Layers)
	}
	return b.text(c, s, a, nil)
}

// text is Text, with the states behind the first layer beside it where at is nil.
func (b BERT) text(c *Context, s Scope, a TextArgs, at *Places) (first, x *gorgonia.Node) {
	ids, lengths, l := a.IDs, a.Lengths, a.Len
	s = s.transformer(b.Layers)
	p := b.check(s, ids)
	c.given(ids.Shape()[0], l)
	x = b.embed(c, s, ids, a.Segments, l, b.classes()-1)
	bias, seen := b.bias(s, l, l), withPrompts(lengths, p)
	if at != nil && (b.Layers == 0 || bias != nil) {
		return nil, at.of(b.Text(c, s, a, nil))
	}
	for i := range b.Layers {
		layer := s.Layer("layers", i)
		x = prompted(i, x, layer.prompt(i, b.Width), l, 0)
		s.tap.tokens(i, x, p+l)
		s.block(func() {
			if at != nil && i == b.Layers-1 {
				x = b.selfAttentionAt(c, layer, x, at.of(unprompted(x, l, p)), seen, p+l, at)
			} else {
				x = b.selfAttention(c, layer, x, seen, bias, p+l)
			}
			x = b.feedForward(c, layer, x)
		})
		if at == nil && i == 0 {
			first = unprompted(x, l, p)
		}
	}
	if at == nil {
		x = unprompted(x, l, p)
	}
	return first, b.final(s, x)
}

// TextClasses encodes the texts of Text with m class tokens: classes (R*m, D), and with
// all also states (R*L, D), the first class token and the words of each text. Without
// all, states is nil and the last layer computes no queries but those of class tokens.
func (b BERT) TextClasses(c *Context, s Scope, a TextArgs, all bool) (states, classes *gorgonia.Node) {
	ids, lengths, l := a.IDs, a.Lengths, a.Len
	s = s.transformer(b.Layers)
	p := b.check(s, ids)
	lengths = withPrompts(lengths, p)
	m, t, seen := b.classes(), l, lengths
	var late *gorgonia.Node // (R*(m-1), D) class tokens that are not in x yet
	if m > 1 {
		t, ids, seen = l+m-1, layout.RepeatFirst(ids, l, m-1), layout.AddInt(lengths, m-1)
	}
	c.given(ids.Shape()[0], t)
	x := b.embed(c, s, ids, a.Segments, t, 0) // (R*t, D), class tokens first
	bias, first := b.bias(s, t, t), b.bias(s, m, t)
	if m > 1 && b.TokenBlocks > 0 && b.TokenBlocks < b.Layers {
		x, late = layout.SequenceRest(x, t, 1, m-1), layout.SequenceRows(x, t, 1, m-1)
		t = l
	}
	for i := range b.Layers {
		if late != nil && i == b.Layers-b.TokenBlocks {
			x, late, t = layout.InsertRows(x, late, p+l, m-1, p+1), nil, l+m-1
		}
		see := seen
		if late != nil {
			see = lengths
		}
		layer := s.Layer("layers", i)
		x = prompted(i, x, layer.prompt(i, b.Width), t, 0)
		s.tap.tokens(i, x, p+t)
		s.block(func() {
			if !all && i == b.Layers-1 {
				x = b.selfAttentionLeading(c, layer, x, b.leading(x, p, m, t), see, first, m, p+t)
			} else {
				x = b.selfAttention(c, layer, x, see, bias, p+t)
			}
			x = b.feedForward(c, layer, x)
		})
	}
	if !all {
		if b.Layers == 0 {
			x = leading(x, m, t)
		}
		return nil, b.final(s, x)
	}
	x = b.final(s, unprompted(x, t, p))
	classes = leading(x, m, t)
	if m > 1 {
		x = layout.SequenceRest(x, t, 1, m-1)
	}
	return x, classes
}

// leading returns the first m of the t tokens behind p prompts of every sequence: (R*m, D).
func (b BERT) leading(x *gorgonia.Node, p, m, t int) *gorgonia.Node {
	if p == 0 {
		return leading(x, m, t)
	}
	return layout.SequenceRows(x, p+t, p, m)
}

// check tells class tokens and prompts that make no sense, and returns how many prompts a text has.
func (b BERT) check(s Scope, ids *gorgonia.Node) (prompts int) {
	if b.Classes < 0 || b.TokenBlocks < 0 || b.TokenBlocks > b.Layers {
		misuse("text", ids, "class tokens and their layers must be at least 0, layers at most %d (got %d and %d)",
			b.Layers, b.Classes, b.TokenBlocks)
	}
	if b.Relative > 0 && (b.classes() > 1 || b.FusionLayers > 0) {
		misuse("text", ids, "a bias by distance goes with one class token and no fusion layers (got %d and %d)",
			b.classes(), b.FusionLayers)
	}
	if b.Layers == 0 { // there is nothing that reads them
		return 0
	}
	if b.Relative > 0 && s.prompts() > 0 {
		misuse("text", ids, "a bias by distance goes without prompts, which have no place (got %d)", s.prompts())
	}
	return s.prompts()
}

// embed returns the embeddings of ids (R*t), of the types segments or nil: (R*t, D). Positions are 0, skip+1, skip+2
// ...
func (b BERT) embed(c *Context, s Scope, ids, segments *gorgonia.Node, t, skip int) *gorgonia.Node {
	s = s.In("embeddings").As(Traits{Front: true})
	x := nn.EmbedPadded(s.Param("word/weight", bertInit, b.Vocab, b.Width), ids, b.Pad) // (R*t, D)
	switch types := func() *gorgonia.Node { return s.Param("token_type/weight", bertInit, 2, b.Width) }; {
	case b.NoTokenType: // RoBERTa tells two texts by what stands between them
	case segments != nil && b.classes() > 1:
		misuse("text", ids, "types of tokens go with one class token (got %d)", b.classes())
	case segments != nil:
		x = arith.Add(x, nn.Embed(types(), segments))
	default:
		x = nn.AddPositions(x, types(), 1) // type 0 everywhere
	}
	table := s.Param("position/weight", positionInit(b.TorchStart), b.Positions, b.Width)
	if skip > 0 {
		table = layout.SequenceRest(table, b.Positions, 1, skip)
	}
	x = nn.AddPositions(x, table, t)
	return c.dropout(norm(s, "norm", x, b.eps()), b.Dropout)
}

// bias is that of attention by the distance of m tokens, the first ones, from all t: (H, m, t),
// or nil.
func (b BERT) bias(s Scope, m, t int) *gorgonia.Node {
	if b.Relative == 0 {
		return nil
	}
	return attention.RelativeBias(s.As(Traits{Front: true}).Param("relative/weight", bertInit, b.Relative, b.Heads), m,
		t, farthest)
}

// final is the norm after the text layers.
func (b BERT) final(s Scope, x *gorgonia.Node) *gorgonia.Node {
	if !b.FinalNorm {
		return x
	}
	return norm(s, "norm", x, b.eps())
}

// Pairs says which text and which image each of the R rows of the fusion layers
// reads, as int32 indices (R). nil means its own: row r reads text or image r.
type Pairs struct {
	Texts, Images *gorgonia.Node
	Second        *gorgonia.Node // second pictures of texts with two, which say all three
}

// FusionArgs are N texts, K images and which of them are paired.
type FusionArgs struct {
	Texts        *gorgonia.Node // (N*L, D) states of the text layers
	Lengths      *gorgonia.Node // (N) int32, tokens of each text that are no padding
	Images       *gorgonia.Node // (K*T, Dimage) tokens of the images
	ImageLengths *gorgonia.Node // (R) int32, tokens of its image that each row reads, the first ones; nil: all
	Causal       bool           // a token reads itself and those before it
	Pairs        Pairs
	At           *Places // whose states are computed; nil: all
	// TextNumbers (N) int32 are the numbers of the texts in the global batch, where this process is one of several and
	// they are no stacks of it; nil: they are.
	TextNumbers       *gorgonia.Node
	TextLen, ImageLen int // L and T
}

// Fusion runs the fusion layers (Li et al. 2021, section 3.1) over R pairs of texts and
// images. The result is (R*L, D), or with At the states at M places of these rows, (M, D).
//
// What rows share is computed once: an image is projected to keys and values once,
// and a text attends to itself in the first layer once, however many pairs they are
// in. With dropout, the pairs of a text therefore share the masks of that attention,
// as they share those of the text layers.
func (b BERT) Fusion(c *Context, s Scope, a FusionArgs) *gorgonia.Node {
	s = s.transformer(b.Layers)
	x, lengths, images, p, at, l, t := a.Texts, a.Lengths, a.Images, a.Pairs, a.At, a.TextLen, a.ImageLen
	if b.FusionLayers < 1 {
		misuse("fusion", x, "want at least one fusion layer (got %d)", b.FusionLayers)
	}
	b.checkPictures(x, p)
	c.given(x.Shape()[0], l)
	if a.TextNumbers != nil && p.Texts != nil {
		c.order = order{places: a.TextNumbers}
	}
	if a.Causal && at != nil {
		misuse("fusion", x, "the states of some places alone are of layers that are not causal")
	}
	for i := range b.CrossLayers() {
		layer, keys, seen := s.Layer("layers", b.Layers+i), b.sharedKeys(s, i), p.picture(i%b.pictures())
		last := at != nil && i == b.CrossLayers()-1
		s.block(func() {
			if last && i > 0 {
				defer c.at(at)()
				x = b.selfAttentionAt(c, layer, x, at.of(x), lengths, l, at)
			} else {
				x = b.attend(c, layer, x, selfArgs{lengths: lengths, len: l, causal: a.Causal})
			}
			if i == 0 && p.Texts != nil {
				x, lengths = nn.GatherRows(x, p.Texts, l), layout.GatherInts(lengths, p.Texts) // (R*L, D), (R)
				c.given(p.Texts.Shape()[0], 1)
			}
			if last && i == 0 {
				x = at.of(x)
			}
			if last {
				defer c.at(at)()
				x = b.crossAttentionAt(c, layer, keys, i, x, images, seen, a.ImageLengths, at, t)
			} else {
				x = b.crossAttention(c, layer, i, x, b.crossKeys(keys, images), crossArgs{seen, a.ImageLengths, l, t})
			}
			x = b.feedForward(c, layer, x)
		})
	}
	return x
}

// selfArgs say how sequences of len tokens attend to themselves; lengths and bias may be nil.
type selfArgs struct {
	lengths, bias *gorgonia.Node
	len           int
	causal        bool
}

func (b BERT) selfAttention(c *Context, s Scope, x, lengths, bias *gorgonia.Node, l int) *gorgonia.Node {
	return b.attend(c, s, x, selfArgs{lengths: lengths, bias: bias, len: l})
}

// attend is self-attention of all tokens x (R*L, D).
func (b BERT) attend(c *Context, s Scope, x *gorgonia.Node, a selfArgs) *gorgonia.Node {
	s = s.In("attention")
	l := a.len
	rows := sequences("attention", x, l)
	qkv := b.Metric.fold(s, linear(s, "qkv", b.starts().qkv, x, 3*b.Width), b.Width, b.Width, b.Heads)
	bits := c.bits(rows*b.Heads*l, l, b.Dropout)
	h := attention.SelfAttention(attention.SelfArgs{QKV: qkv, Lengths: a.lengths, Bits: bits, Bias: a.bias,
		Causal: a.causal, Len: l, Heads: b.Heads, Keep: keep(b.Dropout)})
	return b.output(c, s, b.starts().output, h, x)
}

// selfAttentionAt is selfAttention for the queries y (M, D) at some places: (M, D).
func (b BERT) selfAttentionAt(c *Context, s Scope, x, y, lengths *gorgonia.Node, l int, at *Places) *gorgonia.Node {
	s = s.In("attention")
	sequences("attention", x, l)
	q := linearPart(s, "qkv", b.starts().qkv, y, 0, b.Width, 3*b.Width)          // (M, D)
	kv := linearPart(s, "qkv", b.starts().qkv, x, b.Width, 2*b.Width, 3*b.Width) // (N*L, 2D)
	kv = b.Metric.fold(s, kv, 0, b.Width, b.Heads)
	bits := c.bits(y.Shape()[0]*b.Heads, l, b.Dropout)
	h := attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, Index: at.Sequences, Lengths: at.each(lengths),
		Bits: bits, QueryLen: 1, KeyLen: l, Heads: b.Heads, Keep: keep(b.Dropout)})
	return b.output(c, s, b.starts().output, h, y)
}

// selfAttentionLeading is selfAttention for the queries y (R*m, D) of m tokens of every
// sequence of t: (R*m, D).
func (b BERT) selfAttentionLeading(c *Context, s Scope, x, y, lengths, bias *gorgonia.Node, m, t int) *gorgonia.Node {
	s = s.In("attention")
	rows := sequences("attention", x, t)
	q := linearPart(s, "qkv", b.starts().qkv, y, 0, b.Width, 3*b.Width)          // (R*m, D)
	kv := linearPart(s, "qkv", b.starts().qkv, x, b.Width, 2*b.Width, 3*b.Width) // (R*t, 2D)
	kv = b.Metric.fold(s, kv, 0, b.Width, b.Heads)
	bits := c.bits(rows*b.Heads*m, t, b.Dropout)
	h := attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, Lengths: lengths, Bits: bits, Bias: bias,
		QueryLen: m, KeyLen: t, Heads: b.Heads, Keep: keep(b.Dropout)})
	return b.output(c, s, b.starts().output, h, y)
}

// crossKeys are the keys and values of the other side by the parameters of a fusion layer: (N*T, 2D).
func (b BERT) crossKeys(s Scope, images *gorgonia.Node) *gorgonia.Node {
	s = s.In("crossattention")
	kv := linear(s, "kv", from(bertInit), images, 2*b.Width)
	return b.FusionMetric.fold(s, kv, 0, b.Width, b.Heads)
}

// crossArgs say how sequences of queryLen tokens attend to sequences of keyLen; index and lengths may be nil.
type crossArgs struct {
	index, lengths   *gorgonia.Node
	queryLen, keyLen int
}

// crossAttention is that of fusion layer i to the keys and values kv of crossKeys: (R*L, D).
func (b BERT) crossAttention(c *Context, s Scope, i int, x, kv *gorgonia.Node, a crossArgs) *gorgonia.Node {
	s = s.In("crossattention")
	rows := sequences("crossattention", x, a.queryLen)
	q := linear(s, "query", from(bertInit), x, b.Width) // (R*L, D)
	bits := c.bits(rows*b.Heads*a.queryLen, a.keyLen, b.Dropout)
	h := attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, Index: a.index, Lengths: a.lengths, Bits: bits,
		QueryLen: a.queryLen, KeyLen: a.keyLen, Heads: b.Heads, Keep: keep(b.Dropout)})
	s.tap.cross(i, q, kv, h)
	return b.output(c, s, b.starts().output, h, x)
}

// crossAttentionAt is crossAttention for states x (M, D) at some places, each a
// sequence of one query.
func (b BERT) crossAttentionAt(c *Context, s, keys Scope, i int, x, images, index, lengths *gorgonia.Node, at *Places,
	t int) *gorgonia.Node {
	if index = at.each(index); index == nil {
		index = at.Sequences
	}
	return b.crossAttention(c, s, i, x, b.crossKeys(keys, images), crossArgs{index, at.each(lengths), 1, t})
}

func (b BERT) feedForward(c *Context, s Scope, x *gorgonia.Node) *gorgonia.Node {
	s = s.In("ffn")
	h := linearActivated(s, "intermediate", b.starts().mlp, x, defaultTo(b.MLP, 4*b.Width), b.Activation)
	return b.output(c, s, b.starts().mlp, h, x)
}

// output is BERT's block end: LN(x + dropout(dense(h))).
func (b BERT) output(c *Context, s Scope, start start, h, x *gorgonia.Node) *gorgonia.Node {
	h = s.bottleneck(linear(s, "output", start, h, b.Width))
	bits := c.bits(h.Shape()[0], b.Width, b.Dropout)
	_, y := addNorm(s, "norm", h, x, bits, keep(b.Dropout), b.eps())
	return y
}

// MLMHead maps states (M, D) to vocabulary logits (M, V): dense, activation, layer norm,
// and a decoder that is the word embedding plus a bias of its own.
func (b BERT) MLMHead(s Scope, x *gorgonia.Node) *gorgonia.Node {
	s = s.transformer(b.Layers)
	h := s.In("mlm")
	x = linearActivated(h, "dense", from(bertInit), x, b.Width, b.Activation)
	x = norm(h, "norm", x, b.eps())
	word := s.As(Traits{Front: true}).Param("embeddings/word/weight", bertInit, b.Vocab, b.Width)
	return nn.Linear(x, word, h.bias(Zeros, b.Vocab))
}
