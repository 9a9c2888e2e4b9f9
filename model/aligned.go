package model

import (
	"context"
	"fmt"
	"math"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/state"
)

// Aligned is the system of model.system = "align": a map in closed form between stored
// features, which is fitted to all training pairs at once. It has no parameters that steps
// change.
type Aligned struct {
	method align.Method
	engine *compute.Engine
	fitted align.Map // of its type, and zero before Fit or the restoring of State
}

// NewAligned returns the system of a configuration before its fit. The engine stays the
// caller's.
func NewAligned(cfg config.Config, engine *compute.Engine) *Aligned {
	method, zero := cfg.Model.Align.Named(cfg.Model.Align.Method, cfg.Run.Seed)
	return &Aligned{method: method, engine: engine, fitted: zero}
}

// Fit fits the map to pairs, which are read block by block; ASIF keeps them in memory. It ends
// early with the error of ctx, at the next row that it reads. The measures that it returns are
// of at most 1000 of the pairs: cosine is their mean cosine in the shared space, and
// cosine_shuffled that of pairs that do not belong together. A fit without pairs has the
// objective and the agreement of align.Matching before these. Where the rows of a side differ in
// fewer than half of the directions that they could, directions_image or directions_text is how
// many these are.
func (a *Aligned) Fit(ctx context.Context, p align.Pairs) (measures []Part, err error) {
	p = align.Pairs{Image: cancelled{p.Image, ctx}, Text: cancelled{p.Text, ctx}}
	defer func() {
		if ctx.Err() != nil {
			measures, err = nil, ctx.Err()
		}
	}()
	var m align.Map
	if w, ok := a.method.(align.Wasserstein); ok {
		var found *align.Matching
		if m, found, err = w.FitUnpaired(a.engine, p.Image, p.Text); err == nil {
			measures = append(measures, measure("objective", found.Objective), measure("agreement", found.Agreement))
		}
	} else {
		m, err = a.method.Fit(a.engine, p)
	}
	if err != nil {
		return nil, err
	}
	paired, shuffled, err := align.MeanCosines(a.engine, m, p, 1000)
	if err != nil {
		return nil, err
	}
	measures = append(measures, measure("cosine", paired), measure("cosine_shuffled", shuffled))
	for _, s := range []align.Side{align.Image, align.Text} {
		directions, possible, err := align.Span(a.engine, s, p.Of(s))
		if err != nil {
			return nil, err
		}
		if directions < possible/2 {
			measures = append(measures, measure("directions_"+s.String(), float64(directions)))
		}
	}
	a.fitted = m
	return measures, nil
}

// measure is a number of a fit as the log names it.
func measure(name string, v float64) Part {
	return Part{Name: "fit/" + name, Value: v, Measure: true}
}

// cancelled are rows that end with a context.
type cancelled struct {
	rows align.Rows
	ctx  context.Context
}

func (c cancelled) Rows() int  { return c.rows.Rows() }
func (c cancelled) Width() int { return c.rows.Width() }
func (c cancelled) Row(i int, dst []float32) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.rows.Row(i, dst)
}

// State returns the part of a checkpoint that holds the map.
func (a *Aligned) State() []state.Part { return []state.Part{a.fitted} }

// Map returns the fitted map.
func (a *Aligned) Map() align.Map { return a.fitted }

// Dim returns C, the channels of the shared space.
func (a *Aligned) Dim() int { return a.fitted.Width() }

// PairScore is the product of mapped rows, which have unit length.
func (a *Aligned) PairScore() (scoring.Score, error) {
	return scoring.Score{Space: space.Space{Dim: a.Dim(), Spheres: 1},
		Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}, nil
}

// Image and Text map one side.
func (a *Aligned) Image() *MapEncoder { return &MapEncoder{a, align.Image, batch.ImageFeatures} }

// Text maps the other side; see Image.
func (a *Aligned) Text() *MapEncoder { return &MapEncoder{a, align.Text, batch.TextFeatures} }

// MapEncoder is one side of a fitted map. A row of stored features is its one token.
type MapEncoder struct {
	of     *Aligned
	side   align.Side
	column string
}

// Columns are the columns of a batch that Encode reads.
func (m *MapEncoder) Columns() []batch.Column {
	return []batch.Column{{Name: m.column, Shape: []int{m.Width()}}}
}

// Len returns 1.
func (m *MapEncoder) Len() int { return 1 }

// Width returns D, the width of a stored row.
func (m *MapEncoder) Width() int { return m.of.fitted.RowWidth(m.side) }

// Dim returns C, the channels of the shared space.
func (m *MapEncoder) Dim() int { return m.of.Dim() }

// Encode returns the rows (n, D) of b as they are, and as they are mapped (n, C). It fails
// with the error of ctx.
func (m *MapEncoder) Encode(ctx context.Context, b *batch.Batch) (states, features []float32, err error) {
	if states, err = m.EncodeClasses(ctx, b); err != nil {
		return nil, nil, err
	}
	features, err = m.of.fitted.Apply(m.of.engine, m.side, states)
	return states, features, err
}

// Features is Encode without the rows as they are.
func (m *MapEncoder) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	_, features, err := m.Encode(ctx, b)
	return features, err
}

// EncodeClasses returns the rows (n, D) of b as they are.
func (m *MapEncoder) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	return b.Floats(m.column), ctx.Err()
}

// FitReference fits the alignment of objective.klot.reference to pairs, with the settings of
// [model.align]. It ends early with the error of ctx.
func FitReference(ctx context.Context, cfg config.Config, e *compute.Engine,
	pairs align.Pairs) (*objectives.Reference, error) {
	m, err := fitLinear(ctx, cfg, e, "objective.klot.reference", cfg.Objective.KLOT.Reference, pairs)
	if err != nil {
		return nil, err
	}
	layer := func(s align.Side) (l objectives.Layer) {
		l.Weight, l.Bias = m.Layer(s)
		return l
	}
	return &objectives.Reference{Image: layer(align.Image), Text: layer(align.Text)}, nil
}

// fitLinear fits the map of a name, which key asks for, of one linear layer a side.
func fitLinear(ctx context.Context, cfg config.Config, e *compute.Engine, key, name string,
	pairs align.Pairs) (*align.Linear, error) {
	method, zero := cfg.Model.Align.Named(name, cfg.Run.Seed)
	a := &Aligned{method: method, engine: e, fitted: zero}
	if _, err := a.Fit(ctx, pairs); err != nil {
		return nil, err
	}
	m, ok := a.fitted.(*align.Linear)
	if !ok || m.Parts() > 1 {
		return nil, fmt.Errorf("model: %s = %q is not a map of one linear layer a side", key, name)
	}
	return m, nil
}

// StartHeads sets linear heads to the map of model.heads.start, fitted to pairs, and returns in
// words what they start from. Channels that the map has not are zero. Of CCA, whose channels
// are ordered by correlation, the first ones are taken where the heads have fewer; of the
// other maps none can be left out, which is config.Errors. The weights of a side are scaled to
// the size of fresh ones, which cosines do not see.
func StartHeads(ctx context.Context, p *Trainer, pairs align.Pairs) (string, error) {
	cfg := p.cfg
	name, c := cfg.Model.Heads.Start, cfg.Model.Head.Dim
	m, err := fitLinear(ctx, cfg, p.engine, "model.heads.start", name, pairs)
	if err != nil {
		return "", err
	}
	w := m.Width()
	if c < w && name != "cca" {
		return "", config.Errors{{Path: "model.head.dim", Value: c,
			Msg: fmt.Sprintf("must be at least %d for model.heads.start = %q, whose map has so many channels", w,
				name),
			Hint: `raise it: further channels start from zero; or start from "cca", whose first channels are its best`}}
	}
	for s, side := range []side{p.design.image, p.design.text} {
		weight, err := p.params.named(side.proj + "/fc1/weight")
		if err != nil {
			return "", err
		}
		bias, err := p.params.named(side.proj + "/fc1/bias")
		if err != nil {
			return "", err
		}
		startLayer(weight, bias, m, align.Side(s), min(c, w))
	}
	p.params.CopyToMomentum()
	took := fmt.Sprintf("%s of %d pairs", name, pairs.Len())
	switch {
	case c > w:
		took += fmt.Sprintf(": %d of %d channels, the others are zero", w, c)
	case c < w:
		took += fmt.Sprintf(": the first %d of its %d channels", c, w)
	}
	return took, nil
}

// startLayer sets a linear layer, weight (C, D) and bias (C), to the first n channels of a map.
func startLayer(weight, bias []float32, m *align.Linear, s align.Side, n int) {
	d := m.RowWidth(s)
	from, offset := m.Layer(s)
	clear(weight)
	clear(bias)
	copy(weight, from[:n*d])
	copy(bias, offset[:n])
	// Fresh weights are uniform within 1/sqrt(D).
	scale := float32(math.Sqrt(float64(n) / 3 / max(vector.SumSq(weight), 1e-30)))
	vector.Scale(weight, scale, weight)
	vector.Scale(bias, scale, bias)
}

// named returns the values of a parameter.
func (p *Params) named(name string) ([]float32, error) {
	q, ok := p.Get(name)
	if !ok {
		return nil, fmt.Errorf("model: there is no parameter %s: model.heads.start needs linear heads", name)
	}
	return p.Value(q), nil
}
