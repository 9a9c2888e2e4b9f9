package encoders

import (
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/attention"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// Decoder writes texts about states of something else, such as the answer to a question about an image (ALBEF, Li et
// al. 2021, section 4, VQA) or the caption of one: the fusion layers of a BERT without text layers, where a token reads
// itself, the tokens before it and the states, and the head of masked language modelling says which token comes next.
// The head's matrix is the embedding of words. Parameters have the names of BERT's.
type Decoder struct {
	BERT // Layers is 0
}

// DecoderArgs are R texts of L places about N sequences of T states.
type DecoderArgs struct {
	IDs     *gorgonia.Node // (R*L) int32
	Lengths *gorgonia.Node // (R) int32, tokens of each text; nil: L
	Len     int            // L

	States       *gorgonia.Node // (N*T, D')
	Index        *gorgonia.Node // (R) int32, the sequence that each text reads; nil: its own, and N is R
	StateLengths *gorgonia.Node // (R) int32, states that each text reads, the first ones; nil: all T
	StateLen     int            // T
}

// Logits returns those of the token that follows each token, (R*L, V). They mean nothing beyond a length.
func (d Decoder) Logits(c *Context, s Scope, a DecoderArgs) *gorgonia.Node {
	d.checkLayers(a.IDs)
	x := d.embed(c, s, a.IDs, nil, a.Len, 0)
	x = d.Fusion(c, s, FusionArgs{
		Texts: x, Lengths: a.Lengths, Images: a.States, ImageLengths: a.StateLengths, Causal: true,
		Pairs: Pairs{Images: a.Index}, TextLen: a.Len, ImageLen: a.StateLen,
	}) // (R*L, D)
	return d.MLMHead(s, x)
}

// Keys returns the keys and values of the states (N*T, D') in each layer, (N*T, 2D), which Next reads. They are the
// same for every token.
func (d Decoder) Keys(s Scope, states *gorgonia.Node) (keys gorgonia.Nodes) {
	for i := range d.FusionLayers {
		keys = append(keys, d.crossKeys(s.Layer("layers", i), states))
	}
	return keys
}

// NextArgs are R texts that have been read up to one token, which is the next to be read.
type NextArgs struct {
	IDs, Positions *gorgonia.Node // (R) int32, the token and its place in the text, from 0 on

	Past    gorgonia.Nodes // of each layer (C, 2D): keys and values of tokens that have been read, of any text
	Before  *gorgonia.Node // (R*P) int32, rows of Past: the tokens before that one; those beyond Seen-1 are any
	Seen    *gorgonia.Node // (R) int32, tokens that it reads: itself and those before it, at most 1+P
	PastLen int            // P, at least 1

	Keys         gorgonia.Nodes // of each layer (N*T, 2D), as Decoder.Keys gives them
	Index        *gorgonia.Node // (R) int32, the sequence of states that each text reads
	StateLengths *gorgonia.Node // (R) int32, states that it reads, the first ones
	StateLen     int            // T
}

// Next returns what Logits says of one token without dropout, (R, V), and the token's keys and values in each layer,
// (R, 2D), which are to be rows of Past for the tokens behind it.
func (d Decoder) Next(s Scope, a NextArgs) (logits *gorgonia.Node, own gorgonia.Nodes) {
	d.checkLayers(a.IDs)
	if len(a.Past) != d.FusionLayers || len(a.Keys) != d.FusionLayers {
		misuse("decoder", a.IDs, "want keys and values of %d layers (got those of %d before and of %d of states)",
			d.FusionLayers, len(a.Past), len(a.Keys))
	}
	c := &Context{}
	x := d.embedAt(s, a.IDs, a.Positions) // (R, D)
	for i := range d.FusionLayers {
		layer := s.Layer("layers", i)
		var kv *gorgonia.Node
		x, kv = d.attendCached(c, layer, x, a, a.Past[i])
		own = append(own, kv)
		x = d.crossAttention(c, layer, i, x, a.Keys[i], crossArgs{a.Index, a.StateLengths, 1, a.StateLen})
		x = d.feedForward(c, layer, x)
	}
	return d.MLMHead(s, x), own
}

// embedAt is embed for tokens at any places.
func (d Decoder) embedAt(s Scope, ids, positions *gorgonia.Node) *gorgonia.Node {
	s = s.In("embeddings").As(Traits{Front: true})
	x := nn.Embed(s.Param("word/weight", bertInit, d.Vocab, d.Width), ids)
	if !d.NoTokenType {
		x = nn.AddPositions(x, s.Param("token_type/weight", bertInit, 2, d.Width), 1)
	}
	x = arith.Add(x, nn.Embed(s.Param("position/weight", positionInit(d.TorchStart), d.Positions, d.Width), positions))
	return norm(s, "norm", x, d.eps())
}

// attendCached is the self-attention of one token of each text, x (R, D), and returns its keys and values, (R, 2D).
// Among the keys that a token sees its own come first: attention knows no order.
func (d Decoder) attendCached(c *Context, s Scope, x *gorgonia.Node, a NextArgs, past *gorgonia.Node) (y,
	own *gorgonia.Node) {
	s = s.In("attention")
	q := linearPart(s, "qkv", d.starts().qkv, x, 0, d.Width, 3*d.Width)             // (R, D)
	own = linearPart(s, "qkv", d.starts().qkv, x, d.Width, 2*d.Width, 3*d.Width)    // (R, 2D)
	own = d.Metric.fold(s, own, 0, d.Width, d.Heads)                                // (R, 2D)
	kv := layout.InsertRows(nn.GatherRows(past, a.Before, 1), own, a.PastLen, 1, 0) // (R*(1+P), 2D)
	h := attention.CrossAttention(attention.CrossArgs{Q: q, KV: kv, Lengths: a.Seen, QueryLen: 1, KeyLen: 1 + a.PastLen,
		Heads: d.Heads, Keep: 1})
	return d.output(c, s, d.starts().output, h, x), own
}

// checkLayers tells layers that make no decoder.
func (d Decoder) checkLayers(ids *gorgonia.Node) {
	if d.Layers != 0 || d.FusionLayers < 1 || d.classes() > 1 || d.Relative > 0 {
		misuse("decoder", ids, "want no text layers, at least one with cross-attention, one class token and no bias by distance (got %d and %d layers, %d class tokens)", d.Layers, d.FusionLayers, d.classes())
	}
}
