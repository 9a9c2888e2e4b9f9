package model

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
)

// Side is one side of a system as its configuration describes it: a tower with its head, and the names of their
// parameters.
type Side struct {
	Tower encoders.Tower
	Head  encoders.Head
	Name  string // of the tower's parameters: Name/...
	Proj  string // of the head's
}

// Sides are those of a system and its fusion layers.
type Sides struct {
	Image, Text Side
	Fusion      *encoders.BERT // nil: the system has none
	Views       bool           // images alone: both sides are one
	Sentences   bool           // texts alone: both sides are one
}

// Describe returns the sides of a system, for programs that write it down in other forms. Of options the vocabulary,
// the id of padding and towers are read. A closed form has none and is an error.
func Describe(cfg config.Config, o Options) (Sides, error) {
	d, err := newDesign(cfg, o)
	if err != nil {
		return Sides{}, err
	}
	of := func(s side, own encoders.Tower) Side {
		if own != nil {
			s.tower = own
		}
		return Side{Tower: s.tower, Head: s.head, Name: s.name, Proj: s.proj}
	}
	p := Sides{Image: of(d.image, o.Image), Text: of(d.text, o.Text), Views: d.views && !cfg.Has(section.Sentences),
		Sentences: cfg.Has(section.Sentences)}
	if d.fusion != nil && d.fusion.FusionLayers > 0 {
		p.Fusion = d.fusion
	}
	return p, nil
}

// Layout returns the parameters that training a configuration has, in the order of their names, without memory for
// any of them: their names, shapes and traits, and the values that each begins with (Params.Begin).
func Layout(cfg config.Config, o Options) (*Params, error) {
	if !cfg.Has(section.Graph) && cfg.Queue.Size > 0 { // whose size is no part of any shape
		cfg.Queue.Size = cfg.Train.BatchSize
	}
	params := NewParams(cfg.Run.Seed, cfg.Momentum.Enabled)
	params.start = o.Start
	m, err := modelOf(cfg, o, params)
	if err != nil {
		return nil, err
	}
	if cfg.Has(section.OneEncoder) {
		n := newNet(params)
		if _, _, err := m.text.build(shape{1, m.text.Len(), readFeatures}, n); err != nil {
			return nil, err
		}
		slices.SortFunc(params.list, func(a, b *Param) int { return strings.Compare(a.Name, b.Name) })
		return params, nil
	}
	p := &Trainer{Model: m}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if _, err := p.assemble(); err != nil {
		return nil, err
	}
	slices.SortFunc(params.list, func(a, b *Param) int { return strings.Compare(a.Name, b.Name) })
	return params, p.Close()
}
