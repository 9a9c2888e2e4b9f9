package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
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

// HeatMaps returns for each of the n pairs in b (Encoder.Columns of both sides) what its P patches say for it, (n, P),
// by the attention A and the gradient of the score s to it, as ALBEF's weakly supervised grounding does:
//
//	H_p = 1/L sum_{l < length} 1/H sum_h A_hlp max(0, ds/dA_hlp)
//
// over H heads and the L = data.tokens places of a text, the first of which is [CLS]; without Match over the class token
// alone. (ALBEF's code divides by the longest text of the batch, and the cosine by the temperature, factors that all
// patches share.) A computation is kept for every number of rows: call it with few different ones. It ends early with the
// error of ctx.
func (p *Pairs) HeatMaps(ctx context.Context, b *batch.Batch, of HeatOf) ([]float32, error) {
	n := b.Rows()
	if err := p.CheckHeat(of); err != nil {
		return nil, err
	}
	x, err := p.heating(heatKey{score: "pair", of: of, rows: n}, func(x *heating, net *net, on encoders.Scope) *gorgonia.Node {
		if of.Match {
			return x.match(p, net, on, of.Layer, n)
		}
		return x.features(p, net, on, of.Layer, n)
	})
	if err != nil {
		return nil, err
	}
	return x.maps(ctx, p, b)
}

// CheckHeat refuses heat maps that the model has none of.
func (p *Pairs) CheckHeat(of HeatOf) error {
	n, what, why := p.layers(&p.design.image), "block of the image tower", "its image tower has no class token that attends to patches"
	if _, ok := p.design.image.tower.(encoders.ImageTower); ok && p.imageHasClass() && p.design.interaction == nil && !p.design.views {
		why = ""
	}
	if of.Match {
		n, what, why = p.blocks().Fusion, "fusion layer", "it has no match head"
		if p.HasMatching() {
			why = ""
		}
	}
	if why != "" {
		return fmt.Errorf("model: model.system %q has no heat maps of this mode: %s", p.cfg.Model.System, why)
	}
	if of.Layer < 0 || of.Layer >= n {
		return fmt.Errorf("model: there is no %s %d: the model has %d, from 0 on", what, of.Layer, n)
	}
	return nil
}

// imageHasClass says whether an image has one class token that its head reads.
func (p *Pairs) imageHasClass() bool {
	t, ok := p.design.image.tower.(encoders.ImageTower)
	return ok && (t.Pool == "" || t.Pool == encoders.PoolClass) && !t.NoClass && t.ViT.Classes <= 1
}

// match builds the sum of the match logits of n pairs.
func (x *heating) match(p *Pairs, net *net, on encoders.Scope, layer, n int) *gorgonia.Node {
	d := &p.design
	all := encoders.Want{Tokens: true}
	image := d.image.tower.Encode(&encoders.Context{}, p.image.scope(on.In(d.image.name)), net.towerInputs(d.image.tower, n, nil), all)
	text := d.text.tower.Encode(&encoders.Context{}, p.text.scope(on.In(d.text.name)), net.towerInputs(d.text.tower, n, nil), all)
	tap := encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if i == layer {
			x.see(q, kv, gathered, n, 0, image.Len)
		}
	}}
	fused := d.fusion.Fusion(&encoders.Context{}, tuned(p.cfg.Model, on.In(d.text.name), &encoders.Context{}).Tapped(tap), encoders.FusionArgs{
		Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
	}) // (n*L, D)
	x.heads, x.d, x.lengths = d.fusion.Heads, d.fusion.Width, text.Lengths
	logits := objectives.MatchLogits(encoders.NewScope(net.params), layout.StridedRows(fused, 0, text.Len, n)) // (n, 2)
	return arith.Sum(layout.StridedRows(layout.Reshape(logits, 2*n, 1), 1, 2, n))
}

// features builds the sum of the scores of n pairs.
func (x *heating) features(p *Pairs, net *net, on encoders.Scope, layer, n int) *gorgonia.Node {
	features := func(e *Encoder, tap encoders.Tap) *gorgonia.Node {
		s := e.side
		// With all tokens wanted every block computes the queries of all.
		q := s.tower.Encode(&encoders.Context{}, e.scope(on.In(s.name)).Tapped(tap), net.towerInputs(s.tower, n, s.column), encoders.Want{Tokens: true, Classes: true})
		return s.head.Project(&encoders.Context{}, on.In(s.proj), q.Classes) // (n, C)
	}
	f := features(p.image, encoders.Tap{Self: func(i int, qkv, gathered *gorgonia.Node, t int) {
		if i == layer {
			x.looks = append(x.looks, &look{qkv: qkv, gathered: gathered, l: 1, t: t})
		}
	}})
	x.heads, x.d = p.cfg.Model.Image.Heads, p.image.Width()
	scores := p.hostScore(encoders.NewScope(net.params)).Pairs(f, features(p.text, encoders.Tap{})) // (n, n)
	return arith.Sum(layout.StridedRows(layout.Reshape(scores, n*n, 1), 0, n+1, n))
}
