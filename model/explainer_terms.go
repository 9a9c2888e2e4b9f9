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
func (e *Explainer) terms() func(image, text Locals) ([]explain.Terms, error) {
	switch m := e.m.design.interaction.(type) {
	case interact.MaxSim:
		return func(image, text Locals) ([]explain.Terms, error) { return e.maxSimTerms(m, image, text) }
	case interact.Cross:
		return func(image, text Locals) ([]explain.Terms, error) { return e.crossTerms(m, image, text) }
	}
	return nil
}

// HasTerms says whether the model has an interaction whose kind says what its scores are made of.
func (e *Explainer) HasTerms() bool { return e.terms() != nil }

func (e *Explainer) crossTerms(m interact.Cross, image, text Locals) (list []explain.Terms, err error) {
	how := explain.Cross{Focal: m.Focal, Prob: m.Prob, Share: 1}
	if how.Attention, err = e.underMetric(m.Attention, encoders.AttentionSite, image.Tokens); err != nil {
		return nil, err
	}
	if how.Similarity, err = e.underMetric(m.Similarity, encoders.SimilaritySite, image.Tokens); err != nil {
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

func (e *Explainer) maxSimTerms(m interact.MaxSim, image, text Locals) (list []explain.Terms, err error) {
	rows, err := e.underMetric(m.Metric, encoders.SimilaritySite, image.Tokens)
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
			if how.Weights, err = e.softWeights("interaction/"+x.of, m.Hidden, x.queries); err != nil {
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
func (e *Explainer) softWeights(name string, hidden int, x Locals) ([]float64, error) {
	values := func(of string) ([]float32, error) {
		q, ok := e.m.params.Get(name + "/" + of)
		if !ok {
			return nil, fmt.Errorf("model: %s/%s, which weighs tokens, is not there", name, of)
		}
		return e.m.params.Value(q), nil
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
func (e *Explainer) underMetric(m encoders.Metric, site string, x explain.Tokens) ([]float32, error) {
	if m.Params(site) == nil {
		return nil, nil
	}
	w, err := storedMetric(m, site, e.m.values)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("model: %s and the like, the metric that tokens are compared with, are not there",
			m.Params(site)[0].Name)
	}
	s := scoring.Score{Space: space.Space{Dim: x.C, Spheres: 1},
		Terms: []scoring.Term{{Kind: scoring.GSSF, Weight: 1, Metric: w}}}
	out := make([]float32, len(x.Rows))
	return out, s.FoldImages(out, x.Rows, x.N)
}

// comparedTokens are the nodes of the tokens of one side.
type comparedTokens struct {
	local   encoders.Local
	lengths *gorgonia.Node // nil: all
	lead    int            // tokens before patches, regions or places
}

// compare adds the tokens that an interaction compares, with a tap on them at the block behind the
// tower's own.
func (e *Explainer) compare(n *net, of *Encoder, block int, to *tapped) *comparedTokens {
	s := of.side
	q := of.encode(n, 1, encoders.Tap{Tokens: func(i int, tokens *gorgonia.Node, t int) {
		if i == block {
			*to = tapped{node: tokens, lead: t - parts(s.tower)}
		}
	}}, encoders.Want{Tokens: true})
	head := s.head.(encoders.TokenHead)
	local := q.Local(head, head.Raw(n.root().In(s.proj), q.Tokens), e.m.cfg.Model.Interaction.ClassTokens)
	c := &comparedTokens{local: local, lead: q.Len - parts(s.tower)}
	if block == e.layers(s) {
		*to = tapped{node: local.Rows, lead: c.lead}
	}
	if local.Lengths != nil {
		c.lengths = layout.AddInt(local.Lengths, 0)
	}
	return c
}

// nodes are those whose values read takes.
func (c *comparedTokens) nodes() gorgonia.Nodes {
	return gorgonia.Nodes{c.local.Rows, c.local.Raw, c.lengths}
}

// read returns the tokens after a run.
func (c *comparedTokens) read(o *outputs) (l Locals) {
	rows, raw, lengths := o.floats(c.local.Rows), o.floats(c.local.Raw), o.of(c.lengths).I32
	if o.err != nil {
		return l
	}
	first, last := c.local.First, c.local.Len
	if lengths != nil {
		last = int(lengths[0])
	}
	channels := c.local.Rows.Shape()[1]
	l = Locals{First: first - c.lead}
	l.N, l.C = max(last-first, 0), channels
	l.Rows, l.Raw = rows[first*channels:][:l.N*channels], raw[first*channels:][:l.N*channels]
	return l
}
