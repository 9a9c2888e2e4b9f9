package model

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Compared are the tokens of one pair that an interaction compares, and what its score is made of.
type Compared struct {
	Image, Text Locals
	// Terms are the directions whose sum is the score; nil of a kind that does not say. Gradients to
	// the tokens explain that one.
	Terms []explain.Terms
}

// Locals are the tokens of one side that take part.
type Locals struct {
	explain.Tokens           // in the shared space
	Raw            []float32 // the rows before their norm
	// First is the place of the first one, counted as those of Explained.Image and Text: below 0 where
	// class tokens of an image take part.
	First int
}

// terms is the table of what scores of interactions are made of, a line for each kind that says; nil for
// the others.
func (p *Pairs) terms() func(image, text Locals) ([]explain.Terms, error) {
	switch m := p.design.interaction.(type) {
	case interact.MaxSim:
		return func(image, text Locals) ([]explain.Terms, error) { return p.maxSimTerms(m, image, text) }
	case interact.Cross:
		return func(image, text Locals) ([]explain.Terms, error) { return p.crossTerms(m, image, text) }
	}
	return nil
}

// HasTerms says whether the model has an interaction whose kind says what its scores are made of.
func (p *Pairs) HasTerms() bool { return p.terms() != nil }

func (p *Pairs) crossTerms(m interact.Cross, image, text Locals) (list []explain.Terms, err error) {
	how := explain.Cross{Focal: m.Focal, Share: 1}
	if how.Attention, err = p.underMetric(m.Attention, encoders.AttentionSite, image.Tokens); err != nil {
		return nil, err
	}
	if how.Similarity, err = p.underMetric(m.Similarity, encoders.SimilaritySite, image.Tokens); err != nil {
		return nil, err
	}
	if m.TextToImage != nil && m.ImageToText != nil {
		how.Share = float64(m.Share)
	}
	for _, x := range []struct {
		a            *interact.Attention
		imageQueries bool
	}{{m.TextToImage, false}, {m.ImageToText, true}} {
		if x.a != nil {
			how := how
			how.ImageQueries, how.Scale, how.Pool = x.imageQueries, float64(x.a.Scale), float64(x.a.Pool)
			list = append(list, how.Of(image.Tokens, text.Tokens))
		}
	}
	return list, nil
}

func (p *Pairs) maxSimTerms(m interact.MaxSim, image, text Locals) (list []explain.Terms, err error) {
	rows, err := p.underMetric(m.Metric, encoders.SimilaritySite, image.Tokens)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		there, imageQueries bool
		of                  string
		queries             Locals
	}{{m.TextToImage, false, "text", text}, {m.ImageToText, true, "image", image}} {
		if !x.there {
			continue
		}
		how := explain.MaxSim{ImageQueries: x.imageQueries, Rows: rows}
		switch m.Reduce {
		case interact.Sum:
			how.Weights = explain.Even(x.queries.N, 1)
		case interact.Soft:
			if how.Weights, err = p.softWeights("interaction/"+x.of, m.Hidden, x.queries); err != nil {
				return nil, err
			}
		default:
			how.Weights = explain.Even(x.queries.N, 1/float64(max(1, x.queries.N)))
		}
		if m.TextToImage && m.ImageToText {
			for i := range how.Weights {
				how.Weights[i] /= 2
			}
		}
		list = append(list, how.Of(image.Tokens, text.Tokens))
	}
	return list, nil
}

// softWeights are those of interact.Soft.
func (p *Pairs) softWeights(name string, hidden int, x Locals) ([]float64, error) {
	values := func(of string) ([]float32, error) {
		q, ok := p.params.Get(name + "/" + of)
		if !ok {
			return nil, fmt.Errorf("model: %s/%s, which weighs tokens, is not there", name, of)
		}
		return p.params.Value(q), nil
	}
	g := explain.Weighing{Hidden: hidden}
	for of, to := range map[string]*[]float32{"fc1/weight": &g.A, "fc1/bias": &g.B, "fc2/weight": &g.W} {
		v, err := values(of)
		if err != nil {
			return nil, err
		}
		*to = v
	}
	return g.Weights(explain.Tokens{N: x.N, C: x.C, Rows: x.Raw}), nil
}

// underMetric are the rows of images that a site compares, nil where they are as they are.
func (p *Pairs) underMetric(m encoders.Metric, site string, x explain.Tokens) ([]float32, error) {
	if m.Params(site) == nil {
		return nil, nil
	}
	w, err := storedMetric(m, site, p.values)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("model: %s and the like, the metric that tokens are compared with, are not there", m.Params(site)[0].Name)
	}
	s := scoring.Score{Space: space.Space{Dim: x.C, Spheres: 1}, Terms: []scoring.Term{{Kind: scoring.GSSF, Weight: 1, Metric: w}}}
	out := make([]float32, len(x.Rows))
	return out, s.FoldImages(out, x.Rows, x.N)
}

// comparing are the nodes of the tokens of one side.
type comparing struct {
	local   encoders.Local
	lengths *gorgonia.Node // nil: all
	lead    int            // tokens before patches, regions or places
}

// compare adds the tokens that an interaction compares, with a tap on them at the block behind the
// tower's own.
func (x *explaining) compare(p *Pairs, n *net, on encoders.Scope, e *Encoder, block int, to *tapped) *comparing {
	s := e.side
	scope := e.scope(on.In(s.name)).Tapped(encoders.Tap{Tokens: func(i int, tokens *gorgonia.Node, t int) {
		if i == block {
			*to = tapped{node: tokens, lead: t - parts(s.tower)}
		}
	}})
	q := s.tower.Encode(&encoders.Context{}, scope, n.towerInputs(s.tower, 1, s.column), encoders.Want{Tokens: true})
	head := s.head.(encoders.TokenHead)
	c := &comparing{local: q.Local(head, head.Raw(on.In(s.proj), q.Tokens), p.cfg.Model.Interaction.ClassTokens), lead: q.Len - parts(s.tower)}
	if block == p.layers(s) {
		*to = tapped{node: c.local.Rows, lead: c.lead}
	}
	x.ask = append(x.ask, c.local.Rows, c.local.Raw)
	if c.local.Lengths != nil {
		c.lengths = layout.AddInt(c.local.Lengths, 0)
		x.ask = append(x.ask, c.lengths)
	}
	return c
}

// read returns the tokens after a run.
func (c *comparing) read(x *explaining) (l Locals, err error) {
	rows, err := x.machine.Value(c.local.Rows)
	if err != nil {
		return l, err
	}
	raw, err := x.machine.Value(c.local.Raw)
	if err != nil {
		return l, err
	}
	first, last := c.local.First, c.local.Len
	if c.lengths != nil {
		n, err := x.machine.Value(c.lengths)
		if err != nil {
			return l, err
		}
		last = int(n.I32[0])
	}
	channels := c.local.Rows.Shape()[1]
	l = Locals{First: first - c.lead}
	l.N, l.C = max(last-first, 0), channels
	l.Rows, l.Raw = rows.F32[first*channels:][:l.N*channels], raw.F32[first*channels:][:l.N*channels]
	return l, nil
}
