package model

import (
	"errors"

	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// pairGraph is the compiled match head over pairs.
type pairGraph struct {
	machine                                *exec.Machine
	states, lengths, images, index, logits *gorgonia.Node
}

// matchWeight is the parameter that says whether there is a match head.
const matchWeight = "itm_head/weight"

// HasMatching says whether the model has the fusion encoder's match head.
func (p *Pairs) HasMatching() bool {
	if p.design.fusion == nil {
		return false
	}
	if p.params.source != nil {
		return p.params.source.Has(matchWeight)
	}
	_, ok := p.params.Get(matchWeight)
	return ok
}

// Match scores n pairs with the fusion encoder: text states (n*L, D) with lengths
// (n), and for each the index of its image among the token states of k images
// (k*T, D). The score is the raw logit of class match. The result is
// overwritten by the next call.
func (p *Pairs) Match(states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error) {
	g, err := p.pairGraph(n, k)
	if err != nil {
		return nil, err
	}
	for _, in := range []struct {
		n *gorgonia.Node
		v any
	}{{g.states, states}, {g.lengths, lengths}, {g.index, index}, {g.images, images}} {
		if err := g.machine.SetInput(in.n, in.v); err != nil {
			return nil, err
		}
	}
	if err := g.machine.RunAll(); err != nil {
		return nil, err
	}
	a, err := g.machine.Value(g.logits)
	if err != nil {
		return nil, err
	}
	for i := range n { // keep class 1
		a.F32[i] = a.F32[2*i+1]
	}
	return a.F32[:n], nil
}

func (p *Pairs) pairGraph(n, k int) (g *pairGraph, err error) {
	if g := p.pairs[[2]int{n, k}]; g != nil {
		return g, nil
	}
	if p.design.fusion == nil {
		return nil, errors.New("model: this system has no fusion layers and no match head: set eval.rerank_top = 0")
	}
	if !p.HasMatching() {
		return nil, errors.New("model: no match head: it was trained with objective.itm.weight = 0, so set eval.rerank_top = 0")
	}
	defer op.Catch(&err)
	l, t := p.text.Len(), p.image.Len()
	b := newNet(p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: p.design.teacher})
	in := b.inputs
	g = &pairGraph{
		states: in.Unbound("text states", batch.Float32, n*l, p.text.Width()), lengths: in.Unbound("lengths", batch.Int32, n),
		images: in.Unbound("image states", batch.Float32, k*t, p.image.Width()), index: in.Unbound("image of pair", batch.Int32, n),
	}
	first := &encoders.Places{Rows: in.Count("first tokens", 0, n, l), Sequences: in.Count("pairs", 0, n, 1)}
	fused := p.design.fusion.Fusion(&encoders.Context{}, on.In("text"), g.states, g.lengths, g.images,
		encoders.Pairs{Images: g.index}, first, l, t) // (n, D)
	g.logits = encoders.Classifier{Classes: 2}.Forward(encoders.NewScope(b.params).In("itm_head"), fused, 1)
	if g.machine, err = b.compileEval(exec.Config{Engine: p.engine}, g.logits); err != nil {
		return nil, err
	}
	if p.pairs == nil {
		p.pairs = map[[2]int]*pairGraph{}
	}
	p.pairs[[2]int{n, k}] = g
	return g, nil
}
