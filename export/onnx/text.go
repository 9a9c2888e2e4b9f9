package onnx

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
)

// masked is what is added to the score of a key that is not seen.
const masked = -1e9

// Text adds a text tower over the inputs input_ids (B, L) and attention_mask (B, L), 1 for words and 0 for padding
// behind them, with the parameters below name: what stands for a text, (B, m, D). A tower that reads padding like words
// has no mask.
func (g *Graph) Text(name string, t encoders.TextTower) string {
	ids := g.input("input_ids", int64Type, "texts", "tokens")
	switch e := t.Encoder.(type) {
	case encoders.BERT:
		return g.bert(name, t, e.Full(), ids)
	case encoders.PreNormText:
		return g.preNorm(name, t, e.Full(), ids)
	}
	g.fail("no text tower is made of a %T", t.Encoder)
	return ids
}

// mask is the input of the words that are no padding.
func (g *Graph) mask() string { return g.input("attention_mask", int64Type, "texts", "tokens") }

// words embeds ids (B, L): (B, L, D).
func (g *Graph) words(name, ids string) string {
	return g.op("Gather", on(g.param(name+"/embeddings/word/weight"), ids), attribute{"axis", 0})
}

// hides is what padding adds to scores, (B, 1, 1, L), for a mask (B, L).
func (g *Graph) hides(mask string) string {
	off := g.minus(g.number(1), g.op("Cast", on(mask), attribute{"to", float32Type}))
	return g.unsqueeze(g.times(off, g.number(masked)), 1, 2)
}

// read is what stands for texts of states x (B, L, D): their first m tokens, the mean of their words, or the last one.
func (g *Graph) read(t encoders.TextTower, x string, classes int) string {
	g.states = x
	switch {
	case t.Pool == encoders.PoolMax:
		hidden := g.minus(g.number(1), g.op("Cast", on(g.mask()), attribute{"to", float32Type})) // (B, L)
		return g.op("ReduceMax", on(g.plus(x, g.unsqueeze(g.times(hidden, g.number(masked)), 2))), ints("axes", 1),
			attribute{"keepdims", 1})
	case t.Pool == encoders.PoolMean, t.Pool == encoders.PoolWeighted:
		mask := g.unsqueeze(g.op("Cast", on(g.mask()), attribute{"to", float32Type}), 2) // (B, L, 1)
		if t.Pool == encoders.PoolWeighted {
			// the numbers of the words instead of 1
			mask = g.op("CumSum", on(mask, g.op("Squeeze", on(g.ints(1), g.ints(0)))))
			mask = g.times(mask, g.unsqueeze(g.op("Cast", on(g.mask()), attribute{"to", float32Type}), 2))
		}
		sum := func(v string) string { return g.op("ReduceSum", on(v, g.ints(1)), attribute{"keepdims", 1}) }
		return g.op("Div", on(sum(g.times(x, mask)), sum(mask)))
	case t.Pool == encoders.PoolEnd && t.Padding:
		return g.slice(x, 1, -1, last)
	case t.Pool == encoders.PoolEnd:
		n := g.op("ReduceSum", on(g.mask(), g.ints(1)), attribute{"keepdims", 1}) // (B, 1)
		at := g.minus(n, g.ints(1))
		return g.unsqueeze(g.op("GatherND", on(x, at), attribute{"batch_dims", 1}), 1)
	}
	return g.slice(x, 1, 0, classes)
}

// bert adds a post-norm tower.
func (g *Graph) bert(name string, t encoders.TextTower, b encoders.BERT, ids string) string {
	m := b.Classes
	mask := g.mask()
	short := g.hides(mask) // without the further class tokens
	long := short
	if m > 1 {
		again := g.slice(ids, 1, 0, 1)
		ones := g.slice(mask, 1, 0, 1)
		for range m - 1 {
			ids, mask = g.concat(1, again, ids), g.concat(1, ones, mask)
		}
		long = g.hides(mask)
	}
	length := g.size(ids, 1)
	x := g.words(name, ids)
	if !b.NoTokenType {
		x = g.plus(x, g.slice(g.param(name+"/embeddings/token_type/weight"), 0, 0, 1))
	}
	x = g.plus(x, g.until(g.param(name+"/embeddings/position/weight"), length, 0))
	x = g.norm(name+"/embeddings/norm", x, b.Eps)
	if b.Relative > 0 {
		long = g.plus(long, g.relative(name, b, length))
		short = long
	}
	late, bias := "", long
	if b.TokenBlocks < b.Layers {
		x, late = g.without(x, m)
		bias = short
	}
	for i := range b.Layers {
		if i == b.Layers-b.TokenBlocks && late != "" {
			x, bias = g.with(x, late), long
		}
		l := fmt.Sprintf("%s/layers/%02d", name, i)
		h := g.attention(l+"/attention/qkv", l+"/attention/output", x, bias, b.Width, b.Heads)
		x = g.norm(l+"/attention/norm", g.plus(h, x), b.Eps)
		h = g.mlp(l+"/ffn/intermediate", l+"/ffn/output", b.Activation, x)
		x = g.norm(l+"/ffn/norm", g.plus(h, x), b.Eps)
	}
	if b.FinalNorm {
		x = g.norm(name+"/norm", x, b.Eps)
	}
	if x = g.read(t, x, m); t.Pool == encoders.PoolPooler {
		x = g.activated("tanh", g.linear(name+"/pooler", x))
	}
	return x
}

// relative is MPNet's bias of attention by distance, (1, H, L, L).
func (g *Graph) relative(name string, b encoders.BERT, length string) string {
	of := g.table("buckets", b.Positions, b.Positions, func(i, j int) int { return b.Bucket(j - i) })
	// (L, L, H)
	bias := g.op("Gather", on(g.param(name+"/relative/weight"), g.until(of, length, 0, 1)), attribute{"axis", 0})
	return g.unsqueeze(g.transpose(bias, 2, 0, 1), 0)
}

// preNorm adds a pre-norm tower.
func (g *Graph) preNorm(name string, t encoders.TextTower, p encoders.PreNormText, ids string) string {
	length := g.size(ids, 1)
	x := g.plus(g.words(name, ids), g.until(g.param(name+"/embeddings/position/weight"), length, 0))
	bias := ""
	if !t.Padding {
		bias = g.hides(g.mask())
	}
	if p.Causal {
		bias = g.plus(bias, g.causal(length))
	}
	for i := range p.Layers {
		l := fmt.Sprintf("%s/layers/%02d", name, i)
		x = g.plus(x, g.attention(l+"/attention/qkv", l+"/attention/output", g.norm(l+"/norm1", x, p.Eps), bias,
			p.Width, p.Heads))
		x = g.plus(x, g.mlp(l+"/ffn/intermediate", l+"/ffn/output", p.Activation, g.norm(l+"/norm2", x, p.Eps)))
	}
	return g.read(t, g.norm(name+"/norm", x, p.Eps), 1)
}

// causal is what words that come after one add to its scores: (L, L).
func (g *Graph) causal(length string) string {
	places := g.op("Range", on(g.op("Squeeze", on(g.ints(0), g.ints(0))), g.op("Squeeze", on(length, g.ints(0))),
		g.op("Squeeze", on(g.ints(1), g.ints(0)))))
	after := g.op("Less", on(g.unsqueeze(places, 1), g.unsqueeze(places, 0)))
	return g.times(g.op("Cast", on(after), attribute{"to", float32Type}), g.number(masked))
}
