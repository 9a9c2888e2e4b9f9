package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// matchings are the compiled computations of the match head.
type matchings struct {
	room exec.Room
	of   map[pairing]*matching
}

// pairing is a number of pairs of texts of so many places with some of a number of images.
type pairing struct{ pairs, images, places int }

// matching is a compiled computation.
type matching struct {
	machine                                *exec.Machine
	states, lengths, images, index, logits *gorgonia.Node
	short                                  []float32 // states (n*places, D), of texts with fewer places than all
}

// HasMatching says whether the model has the fusion encoder's match head.
func (p *Pairs) HasMatching() bool {
	if p.design.fusion == nil {
		return false
	}
	if p.params.source != nil {
		return p.params.source.Has(objectives.MatchWeight)
	}
	_, ok := p.params.Get(objectives.MatchWeight)
	return ok
}

// Match scores n pairs with the fusion encoder: text states (n*L, D) with lengths
// (n), and for each the index of its image among the token states of k images
// (k*T, D). The score is the raw logit of class match. The result is
// overwritten by the next call. It ends early with the error of ctx.
func (p *Pairs) Match(ctx context.Context, states []float32, lengths, index []int32, images []float32, n, k int) ([]float32, error) {
	if n < 1 || k < 1 {
		return nil, fmt.Errorf("model: %d pairs with %d images to match: want at least one of each", n, k)
	}
	longest := int32(0)
	for _, l := range lengths {
		longest = max(longest, l)
	}
	x, err := p.matching(pairing{n, k, evenPlaces(longest, p.text.Len())})
	if err != nil {
		return nil, err
	}
	if want := n * p.text.Len() * p.text.Width(); len(states) != want {
		return nil, fmt.Errorf("model: %d values of states of %d texts, want %d: give those of Encode", len(states), n, want)
	}
	if x.short != nil {
		row, all := len(x.short)/n, len(states)/n
		for i := range n {
			copy(x.short[i*row:(i+1)*row], states[i*all:])
		}
		states = x.short
	}
	for _, in := range []struct {
		n *gorgonia.Node
		v any
	}{{x.states, states}, {x.lengths, lengths}, {x.index, index}, {x.images, images}} {
		if err := x.machine.SetInput(in.n, in.v); err != nil {
			return nil, err
		}
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	a, err := x.machine.Value(x.logits)
	if err != nil {
		return nil, err
	}
	for i := range n { // keep class 1
		a.F32[i] = a.F32[2*i+1]
	}
	return a.F32[:n], nil
}

// matching returns a computation, built when it is first asked for.
func (p *Pairs) matching(of pairing) (x *matching, err error) {
	if x := p.matchings.of[of]; x != nil {
		return x, nil
	}
	if p.design.fusion == nil {
		return nil, errors.New("model: this system has no fusion layers and no match head: set eval.rerank_top = 0")
	}
	if !p.HasMatching() {
		return nil, errors.New("model: no match head: it was trained with objective.itm.weight = 0, so set eval.rerank_top = 0")
	}
	defer op.Catch(&err)
	n, k, l, t := of.pairs, of.images, of.places, p.image.Len()
	b := newNet(p.params)
	on := encoders.NewScope(b.params).As(encoders.Traits{Twin: p.design.teacher})
	in := b.inputs
	x = &matching{
		states: in.Unbound("text states", batch.Float32, n*l, p.text.Width()), lengths: in.Unbound("lengths", batch.Int32, n),
		images: in.Unbound("image states", batch.Float32, k*t, p.image.Width()), index: in.Unbound("image of pair", batch.Int32, n),
	}
	first := &encoders.Places{Rows: in.Count("first tokens", 0, n, l), Sequences: in.Count("pairs", 0, n, 1)}
	if l < p.text.Len() {
		x.short = make([]float32, n*l*p.text.Width())
	}
	fused := p.design.fusion.Fusion(&encoders.Context{}, tuned(p.cfg.Model, on.In("text"), &encoders.Context{}), encoders.FusionArgs{
		Texts: x.states, Lengths: x.lengths, Images: x.images, Pairs: encoders.Pairs{Images: x.index}, At: first, TextLen: l, ImageLen: t,
	}) // (n, D)
	x.logits = objectives.MatchLogits(encoders.NewScope(b.params), fused)
	if x.machine, err = b.compileEval(exec.Config{Engine: p.engine, Forward: true, Room: &p.matchings.room}, x.logits); err != nil {
		return nil, err
	}
	if p.matchings.of == nil {
		p.matchings.of = map[pairing]*matching{}
	}
	p.matchings.of[of] = x
	return x, nil
}
