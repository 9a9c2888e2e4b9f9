package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"gorgonia.org/gorgonia"
)

// HeatOf is where heat maps of pairs are read: with Match in the attention of the words to the patches in a fusion
// layer, by the logit of the match head, else in the attention of the image's class token in a block of the image
// tower, by the score of the features. Layer counts from 0.
type HeatOf struct {
	Match bool
	Layer int
}

// heatKey is what heat maps of pairs are compiled for.
type heatKey struct {
	HeatOf
	rows int
}

// HeatMaps returns for each of the n pairs in b (Encoder.Columns of both sides) what its P patches add to it, (n, P),
// by the attention A and the gradient of the score s to it, as ALBEF's weakly supervised grounding does:
//
//	H_p = 1/L sum_{l < length} 1/H sum_h A_hlp max(0, ds/dA_hlp)
//
// over H heads and the L = data.tokens places of a text, the first of which is [CLS]; without Match over the class
// token alone. (ALBEF's code divides by the longest text of the batch, and the cosine by the temperature, factors that
// all patches share.) A computation is kept for every number of rows: call it with few different ones. It ends early
// with the error of ctx.
func (e *Explainer) HeatMaps(ctx context.Context, b *batch.Batch, of HeatOf) ([]float32, error) {
	if err := e.CheckHeat(of); err != nil {
		return nil, err
	}
	x, err := e.maps.get(heatKey{of, b.Rows()})
	if err != nil {
		return nil, err
	}
	return x.values(ctx, e.m, b)
}

// CheckHeat refuses heat maps that the model has none of.
func (e *Explainer) CheckHeat(of HeatOf) error {
	d := &e.m.design
	n, what, why := e.layers(&d.image), "block of the image tower",
		"its image tower has no class token that attends to patches"
	if t, ok := d.image.tower.(encoders.ImageTower); ok && d.interaction == nil && !d.views &&
		(t.Pool == "" || t.Pool == encoders.PoolClass) && !t.NoClass && t.ViT.Classes <= 1 {
		why = ""
	}
	if of.Match {
		n, what, why = e.blocks().Fusion, "fusion layer", "it has no match head"
		if e.m.Matcher() != nil {
			why = ""
		}
	}
	if why != "" {
		return fmt.Errorf("model: model.system %q has no heat maps of this mode: %s", e.m.cfg.Model.System, why)
	}
	if of.Layer < 0 || of.Layer >= n {
		return fmt.Errorf("model: there is no %s %d: the model has %d, from 0 on", what, of.Layer, n)
	}
	return nil
}

// buildMaps adds the sum of the scores of some pairs to a computation, with what heat maps are made of.
func (e *Explainer) buildMaps(of heatKey, n *net) (*heatMaps, gorgonia.Nodes, error) {
	return newHeatMaps(e.m, of.rows, func(x *heatMaps) *gorgonia.Node {
		if of.Match {
			return x.match(e.m, n, of)
		}
		return x.features(e, n, of)
	})
}

// match builds the sum of the match logits of pairs.
func (x *heatMaps) match(m *Model, n *net, of heatKey) *gorgonia.Node {
	tap := x.attention(*m.design.fusion, of.rows, of.Layer, 1, m.image.Len())
	logits, _, text := m.matchLogits(n, of.rows, tap) // (n, 2)
	x.lengths = text.Lengths
	return arith.Sum(layout.StridedRows(layout.Reshape(logits, 2*of.rows, 1), 1, 2, of.rows))
}

// features builds the sum of the scores of pairs by their features.
func (x *heatMaps) features(e *Explainer, n *net, of heatKey) *gorgonia.Node {
	features := func(side *Encoder, tap encoders.Tap) *gorgonia.Node {
		// With all tokens wanted every block computes the queries of all.
		// (n, C)
		return side.project(n, side.encode(n, of.rows, tap, encoders.Want{Tokens: true, Classes: true}).Classes)
	}
	f := features(e.m.image, encoders.Tap{Self: func(i int, qkv, gathered *gorgonia.Node, t int) {
		if i == of.Layer {
			x.looks = append(x.looks, &look{qkv: qkv, gathered: tapped{node: gathered}, l: 1, t: t})
		}
	}})
	x.heads, x.d = e.m.cfg.Model.Image.Heads, e.m.image.Width()
	scores := e.score(n.root()).Pairs(f, features(e.m.text, encoders.Tap{})) // (n, n)
	return arith.Sum(layout.StridedRows(layout.Reshape(scores, of.rows*of.rows, 1), 0, of.rows+1, of.rows))
}

// heatMaps is a compiled computation of scores of the n rows of a batch, with what heat maps of their pictures are made
// of: the attention to each picture, or the tokens of an image tower, and the gradient of the scores to it.
type heatMaps struct {
	computation
	score *gorgonia.Node // the sum over the rows, each of which has a score of its own
	p     int            // patches of a picture, the last ones of its tokens

	looks    []*look // of each picture
	heads, d int
	lengths  *gorgonia.Node // (n) int32, queries of a row that count where it has several

	tokens tapped // (n*t, D) instead of looks
	t      int

	chosen []float32    // (n, k) input of Classifier.HeatMaps
	text   *textsToRead // of Writer.HeatMaps
}

// look is the attention of rows to a picture: of l queries each (n*l, D) to keys and values (N*t, 2D), rows [k | v], or
// with qkv, rows [q | k | v] (n*t, 3D), of the first of t tokens to all of them.
type look struct {
	q, kv, qkv *gorgonia.Node
	gathered   tapped // by the heads, (n*l, D) or (n*t, D)
	l, t       int
	from       int // the sequence of keys of row 0
}

// newHeatMaps returns the maps of so many rows and the nodes that they need. build returns the sum of the scores, and
// says in x what the maps are made of.
func newHeatMaps(m *Model, rows int, build func(x *heatMaps) *gorgonia.Node) (*heatMaps, gorgonia.Nodes, error) {
	if rows < 1 {
		return nil, nil, fmt.Errorf("model: a batch to draw heat maps of has no rows")
	}
	x := &heatMaps{p: parts(m.design.image.tower)}
	x.score = build(x)
	taps, outputs := []*tapped{&x.tokens}, gorgonia.Nodes{x.score, x.lengths, x.tokens.node}
	for _, l := range x.looks {
		taps, outputs = append(taps, &l.gathered), append(outputs, l.q, l.kv, l.qkv)
	}
	err := differentiate(x.score, taps)
	for _, t := range taps {
		outputs = append(outputs, t.grad)
	}
	return x, present(outputs...), err
}

// attention has maps made of the attention of rows in the layers f from at on, one layer for each of their pictures of
// t tokens.
func (x *heatMaps) attention(f encoders.BERT, rows, at, pictures, t int) encoders.Tap {
	x.heads, x.d = f.Heads, f.Width
	return encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if k := i - at; k >= 0 && k < pictures {
			x.looks = append(x.looks, &look{q: q, kv: kv, gathered: tapped{node: gathered}, l: q.Shape()[0] / rows,
				t: t, from: k * rows})
		}
	}}
}

// values computes the maps of the rows of b: (n, pictures, P).
func (x *heatMaps) values(ctx context.Context, m *Model, b *batch.Batch) ([]float32, error) {
	if err := x.run(ctx, b); err != nil {
		return nil, err
	}
	n, pictures, read := b.Rows(), max(1, len(x.looks)), outputs{machine: x.machine}
	out := make([]float32, n*pictures*x.p)
	if x.tokens.node != nil {
		x.ofTokens(m, &read, n, out)
		return out, read.err
	}
	lengths := read.of(x.lengths).I32
	for k, l := range x.looks {
		x.ofAttention(m, &read, l, lengths, n, out[k*x.p:], pictures*x.p)
	}
	return out, read.err
}

// ofAttention writes the maps of n rows by their attention to a picture, one each stride values of out.
func (x *heatMaps) ofAttention(m *Model, read *outputs, of *look, lengths []int32, n int, out []float32, stride int) {
	grad, q, kv, qkv := read.floats(of.gathered.grad), read.floats(of.q), read.floats(of.kv), read.floats(of.qkv)
	if read.err != nil {
		return
	}
	d := x.d
	m.engine.For(n, 1, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			a := explain.Attention{H: x.heads, L: of.l, T: of.t, D: d}
			if qkv != nil { // of the t tokens of a row the first is the class token
				rows := qkv[r*of.t*3*d:][:of.t*3*d]
				a.Queries, a.Grad, a.KeyValues = rows[:d], grad[r*of.t*d:][:d], make([]float32, 0, of.t*2*d)
				for t := range of.t {
					a.KeyValues = append(a.KeyValues, rows[(3*t+1)*d:][:2*d]...)
				}
			} else {
				a.L = min(a.L, int(lengths[r])) // padding counts nothing
				a.Queries, a.Grad = q[r*of.l*d:][:a.L*d], grad[r*of.l*d:][:a.L*d]
				a.KeyValues = kv[(of.from+r)*of.t*2*d:][:of.t*2*d]
			}
			to := out[r*stride:][:x.p]
			for i, v := range a.Relevance() {
				if k := i%of.t - (of.t - x.p); k >= 0 {
					to[k] += float32(v / float64(of.l))
				}
			}
		}
	})
}

// ofTokens writes the maps of n rows by the tokens of their picture, of which those below 0 are 0: (n, P).
func (x *heatMaps) ofTokens(m *Model, read *outputs, n int, out []float32) {
	values, grads := read.of(x.tokens.node), read.floats(x.tokens.grad)
	if read.err != nil {
		return
	}
	d := values.Dim(1)
	m.engine.For(n, 1, func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			at := ((r+1)*x.t - x.p) * d
			for k, v := range explain.Elementwise(values.F32[at:], grads[at:], x.p, d) {
				out[r*x.p+k] = float32(max(v, 0))
			}
		}
	})
}

// matchLogits builds the logits of the match head (n, 2) of pairs, with a tap in the fusion layers.
func (m *Model) matchLogits(n *net, rows int, tap encoders.Tap) (logits *gorgonia.Node, image, text encoders.Sequence) {
	image = m.image.encode(n, rows, encoders.Tap{}, encoders.Want{Tokens: true})
	text = m.text.encode(n, rows, encoders.Tap{}, encoders.Want{Tokens: true})
	fused := m.fuse(n, tap, encoders.FusionArgs{
		Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
	}) // (n*L, D)
	return objectives.MatchLogits(n.root(), layout.StridedRows(fused, 0, text.Len, rows)), image, text
}
