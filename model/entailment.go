package model

import (
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// newEntailment is the loss of visual entailment.
func newEntailment(cfg config.Config) objectives.Entailment {
	return objectives.Entailment{Weight: cfg.Objective.Entailment.Weight, Head: encoders.TaskHead{Classes: config.EntailmentClasses}}
}

// judgedFused judges texts with their pictures by a classifier over the first fused token.
type judgedFused struct{ head encoders.TaskHead }

// judged implements judger: logits (n, Classes).
func (j judgedFused) judged(p *Pairs, net *net, n int) *gorgonia.Node {
	z, _ := j.logits(p, net, n, encoders.Tap{})
	return z
}

// mapped implements mapper by the attention of the words to each picture, in the layer in the middle.
func (j judgedFused) mapped(x *heating, p *Pairs, net *net, n int) (z *gorgonia.Node) {
	pictures, at := p.cfg.Pictures(), p.DefaultBlocks().Fusion
	at -= at % pictures // which attends to the first
	z, x.lengths = j.logits(p, net, n, encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if k := i - at; k >= 0 && k < pictures {
			x.see(q, kv, gathered, n, k, p.image.Len())
		}
	}})
	x.heads, x.d = p.design.fusion.Heads, p.design.fusion.Width
	return z
}

// logits are those of n rows (n, Classes) with a tap in the fusion layers, and the lengths of their texts.
func (j judgedFused) logits(p *Pairs, net *net, n int, tap encoders.Tap) (z, lengths *gorgonia.Node) {
	objectives.Need(p.design.fusion != nil, "task", "this system has no fusion layers")
	root := encoders.NewScope(net.params).As(encoders.Traits{Twin: p.design.teacher})
	encode := func(e *Encoder) (encoders.Sequence, encoders.Inputs) {
		in := net.towerInputs(e.side.tower, n, nil)
		if _, image := in[batch.Images]; image && p.cfg.Pictures() > 1 {
			in = net.withSecond(e.side.tower, n, in)
		}
		return e.side.tower.Encode(&encoders.Context{}, e.scope(root.In(e.side.name)), in, encoders.Want{Tokens: true}), in
	}
	image, _ := encode(p.image)
	text, in := encode(p.text)
	first := &encoders.Places{Rows: net.inputs.Count("first tokens", 0, n, text.Len), Sequences: net.inputs.Count("rows", 0, n, 1)}
	var pairs encoders.Pairs
	if p.cfg.Pictures() > 1 {
		pairs = objectives.BothPictures(net.inputs, n)
	}
	fused := p.design.fusion.Fusion(&encoders.Context{}, tuned(p.cfg.Model, root.In("text"), &encoders.Context{}).Tapped(tap), encoders.FusionArgs{
		Texts: text.Tokens, Lengths: in[batch.Lengths], Images: image.Tokens, Pairs: pairs, At: first, TextLen: text.Len, ImageLen: image.Len,
	}) // (n, D)
	return j.head.Forward(root.In(objectives.TaskHead), fused), in[batch.Lengths]
}
