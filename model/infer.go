package model

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// pairGraph is a compiled inference graph of the match head.
type pairGraph struct {
	machine                                *exec.Machine
	states, lengths, images, index, logits *gorgonia.Node
}

// HasMatching says whether the model has the fusion encoder's match head.
func (m *ALBEF) HasMatching() bool {
	_, ok := m.params.Get("itm_head/weight")
	return ok
}

// Match scores n pairs with the fusion encoder: text states (n*L, D) with lengths
// (n), and for each the index of its image among the token states of k images
// (k*T, D). The score is the raw logit of class match. The result is
// overwritten by the next call.
func (m *ALBEF) Match(states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error) {
	g, err := m.pairGraph(n, k)
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

func run2(m *exec.Machine, a, b *gorgonia.Node) (x, y []float32, err error) {
	if err := m.RunAll(); err != nil {
		return nil, nil, err
	}
	va, err := m.Value(a)
	if err != nil {
		return nil, nil, err
	}
	vb, err := m.Value(b)
	return va.F32, vb.F32, err
}

func (m *ALBEF) pairGraph(n, k int) (g *pairGraph, err error) {
	if g := m.pairs[[2]int{n, k}]; g != nil {
		return g, nil
	}
	if !m.HasMatching() {
		return nil, fmt.Errorf("model: no match head: it was trained with objective.itm.weight = 0, so set eval.rerank_top = 0")
	}
	defer op.Catch(&err)
	l, t := m.cfg.Data.Tokens, m.vit.Tokens()
	b := m.newGraph()
	on := encoders.NewScope(b.params)
	g = &pairGraph{
		states: b.floats("text states", n*l, m.bert.Width), lengths: b.ints("lengths", n),
		images: b.floats("image states", k*t, m.vit.Width), index: b.ints("image of pair", n),
	}
	first := &encoders.Places{Rows: b.ints("first tokens", n), Sequences: b.ints("pairs", n)}
	fused := m.bert.Fusion(&encoders.Context{}, on.In("text"), g.states, g.lengths, g.images,
		encoders.Pairs{Images: g.index}, first, l, t) // (n, D)
	g.logits = encoders.Classifier{Classes: 2}.Forward(on.In("itm_head"), fused, 1)
	if g.machine, err = m.compileEval(b, g.logits); err != nil {
		return nil, err
	}
	if err := g.machine.SetInput(first.Rows, iota32(0, n, l)); err != nil {
		return nil, err
	}
	if err := g.machine.SetInput(first.Sequences, iota32(0, n, 1)); err != nil {
		return nil, err
	}
	if m.pairs == nil {
		m.pairs = map[[2]int]*pairGraph{}
	}
	m.pairs[[2]int{n, k}] = g
	return g, nil
}
