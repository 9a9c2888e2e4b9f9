package model

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/contrast"
	"gorgonia.org/gorgonia"
)

// writtenText is the input of WrittenMaps: of n texts the tokens that are read (n*len), the token behind each, -1 for none, and
// how many are read of a text (n).
type writtenText struct {
	len                   int
	tokens, next, lengths []int32
}

// set makes texts the input, of which all tokens but the last are read.
func (w *writtenText) set(texts [][]int32) {
	clear(w.tokens)
	for i := range w.next {
		w.next[i] = -1
	}
	for i, text := range texts {
		n := len(text) - 1
		copy(w.tokens[i*w.len:], text[:n])
		copy(w.next[i*w.len:], text[1:])
		w.lengths[i] = int32(n)
	}
}

// HasWrittenMaps says whether WrittenMaps has maps.
func (p *Pairs) HasWrittenMaps() bool { return p.HasDecoder() && p.hasPatches() }

// WrittenMaps returns for each of the n rows of b (DecoderColumns) what the P patches of its image say for a text that was written
// about it, (n, P), by the log-probability of the text. Texts are as NewRanker has them, with the tokens that stand around their
// words. The map is that of HeatMaps in the layer in the middle: of an answer, of the question's words within the fusion layers; of
// a caption, of its own tokens within the decoder. A computation is kept for every number of rows and every power of two that
// lengths lie below: call it with few different ones. It ends early with the error of ctx.
func (p *Pairs) WrittenMaps(ctx context.Context, b *batch.Batch, texts [][]int32) ([]float32, error) {
	n := b.Rows()
	switch {
	case !p.HasWrittenMaps():
		return nil, errNoDecoder
	case len(texts) != n:
		return nil, fmt.Errorf("model: heat maps of %d rows need a text for each (got %d)", n, len(texts))
	}
	longest, most := 0, p.cfg.Model.Text.Positions
	for i, text := range texts {
		if len(text) < 2 || len(text)-1 > most {
			return nil, fmt.Errorf("model: text %d has %d tokens: want those around its words, and at most model.text.positions = %d behind the first", i, len(text), most)
		}
		longest = max(longest, len(text)-1)
	}
	longest = min(most, 1<<bits.Len(uint(longest-1)))
	x, err := p.heating(heatKey{score: "written", rows: n, len: longest}, func(x *heating, net *net, on encoders.Scope) *gorgonia.Node {
		x.text = &writtenText{len: longest, tokens: make([]int32, n*longest), next: make([]int32, n*longest), lengths: make([]int32, n)}
		return x.written(p, net, on, n)
	})
	if err != nil {
		return nil, err
	}
	x.text.set(texts)
	return x.maps(ctx, p, b)
}

// written builds the sum of the log-probabilities of n texts.
func (x *heating) written(p *Pairs, net *net, on encoders.Scope, n int) *gorgonia.Node {
	d, c, w := &p.design, &encoders.Context{}, x.text
	decoder := newDecoder(p.cfg, p.o)
	at := (decoder.FusionLayers - 1) / 2
	encode := func(e *Encoder) encoders.Sequence {
		t := e.side.tower
		return t.Encode(c, e.scope(on.In(e.side.name)), net.towerInputs(t, n, nil), encoders.Want{Tokens: true})
	}
	image := encode(p.image)
	tap := encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if i == at {
			x.see(q, kv, gathered, n, 0, image.Len)
		}
	}}
	ints := func(name string, values []int32) *gorgonia.Node {
		return net.inputs.SharedInts("written "+name, values, len(values))
	}
	x.lengths = ints("lengths", w.lengths)
	a := encoders.DecoderArgs{IDs: ints("tokens", w.tokens), Lengths: x.lengths, Len: w.len, States: image.Tokens, StateLen: image.Len}
	scope := on.In("decoder")
	if p.answers() {
		text := encode(p.text)
		a.States = d.fusion.Fusion(c, tuned(p.cfg.Model, on.In(d.text.name), c).Tapped(tap), encoders.FusionArgs{
			Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
		}) // (n*L, D)
		a.StateLengths, a.StateLen, x.lengths = text.Lengths, text.Len, text.Lengths
	} else {
		scope = scope.Tapped(tap)
	}
	x.heads, x.d = decoder.Heads, decoder.Width
	logits := decoder.Logits(c, scope, a) // (n*len, V)
	return arith.Combine([]float32{-1}, arith.Sum(contrast.CrossEntropyRows(contrast.CrossEntropyArgs{Logits: logits, Labels: ints("next tokens", w.next)})))
}
