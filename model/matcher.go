package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"gorgonia.org/gorgonia"
)

// Matcher is the match head over fused pairs of encoded rows.
type Matcher struct {
	m      *Model
	logits program[pairing, *matchLogits]
}

// pairing is a number of pairs of texts of so many places with some of a number of images.
type pairing struct{ pairs, images, places int }

// matchLogits is a compiled match head.
type matchLogits struct {
	computation
	states, lengths, images, index, logits *gorgonia.Node
	short                                  []float32 // states (n*places, D), of texts with fewer places than all
}

func newMatcher(m *Model) *Matcher {
	x := &Matcher{m: m}
	x.logits = program[pairing, *matchLogits]{m: m, build: x.build, forward: true, shared: true}
	m.programs = append(m.programs, &x.logits)
	return x
}

// Match scores n pairs with the fusion encoder: text states (n*L, D) with lengths
// (n), and for each the index of its image among the token states of k images
// (k*T, D). Of the logits (n, 2) the first of a pair is that of no match, the second
// that of match, by which ALBEF ranks. The result is overwritten by the next call. It
// ends early with the error of ctx.
func (x *Matcher) Match(
	ctx context.Context, states []float32, lengths, index []int32, images []float32, n, k int,
) ([]float32, error) {
	if n < 1 || k < 1 {
		return nil, fmt.Errorf("model: %d pairs with %d images to match: want at least one of each", n, k)
	}
	text, longest := x.m.text, int32(0)
	for _, l := range lengths {
		longest = max(longest, l)
	}
	c, err := x.logits.get(pairing{n, k, evenPlaces(longest, text.Len())})
	if err != nil {
		return nil, err
	}
	if want := n * text.Len() * text.Width(); len(states) != want {
		return nil, fmt.Errorf("model: %d values of states of %d texts, want %d: give those of Encode", len(states), n,
			want)
	}
	if c.short != nil {
		row, all := len(c.short)/n, len(states)/n
		for i := range n {
			copy(c.short[i*row:(i+1)*row], states[i*all:])
		}
		states = c.short
	}
	if err := c.runWith(ctx, given{c.states, states}, given{c.lengths, lengths},
		given{c.index, index}, given{c.images, images}); err != nil {
		return nil, err
	}
	a, err := c.machine.Value(c.logits)
	if err != nil {
		return nil, err
	}
	return a.F32[:2*n], nil
}

// build adds the fusion layers and the match head over some pairs to a computation.
func (x *Matcher) build(of pairing, b *net) (*matchLogits, gorgonia.Nodes, error) {
	n, k, l, t := of.pairs, of.images, of.places, x.m.image.Len()
	in, width := b.inputs, x.m.text.Width()
	c := &matchLogits{
		states: in.Unbound("text states", batch.Float32, n*l, width), lengths: in.Unbound("lengths", batch.Int32, n),
		images: in.Unbound("image states", batch.Float32, k*t, x.m.image.Width()),
		index:  in.Unbound("image of pair", batch.Int32, n),
	}
	if l < x.m.text.Len() {
		c.short = make([]float32, n*l*width)
	}
	fused := x.m.fuse(b, encoders.Tap{}, encoders.FusionArgs{
		Texts: c.states, Lengths: c.lengths, Images: c.images, Pairs: encoders.Pairs{Images: c.index},
		At: b.firstTokens(n, l), TextLen: l, ImageLen: t,
	}) // (n, D)
	c.logits = objectives.MatchLogits(b.root(), fused)
	return c, gorgonia.Nodes{c.logits}, nil
}

// firstTokens are the places of the first tokens of n texts of l places.
func (n *net) firstTokens(texts, l int) *encoders.Places {
	return &encoders.Places{Rows: n.inputs.Count("first tokens", 0, texts, l),
		Sequences: n.inputs.Count("texts", 0, texts, 1)}
}
