package model

import (
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// design is what a system is made of.
type design struct {
	space       space.Space // of the features
	image, text side
	teacher     bool           // both sides have momentum copies
	fusion      *encoders.BERT // layers over pairs, or nil
	// views: of images alone or of texts alone. The sides are two views of an image, or one. Only what a loss reads is
	// encoded, the queue holds one ring, and the batch enters the queue before it is compared.
	views bool
	// crops are further, smaller views of an image through the tower of that size, which the image side's head follows.
	crops crops
	// interaction scores pairs by their tokens instead of features, nil without.
	interaction encoders.Interaction
	// keys returns what enters the queue with a batch.
	keys func(s *objectives.Step) keyNodes
}

// side is one side of a design.
type side struct {
	name  string // of the tower's parameters
	head  encoders.Head
	proj  string // of the head's parameters
	tower encoders.Tower
	// frozen: the tower keeps its parameters, and is as in inference.
	frozen bool
	// kept: the class tokens of a frozen tower are columns of the batch, batch.ImageTower and
	// batch.TextTower.
	kept bool
	// inTraining is the tower of a training step where it reads more columns than tower; nil: tower.
	inTraining encoders.Tower
	// column and teacher rename columns of the tower to those of the batch that the online
	// side and the teacher's read, where they are others.
	column, teacher map[string]string
}

// newDesign is the table of the systems.
func newDesign(cfg config.Config, o Options) (design, error) {
	space, err := cfg.Model.Head.Space()
	if err != nil {
		return design{}, fmt.Errorf("model: model.head.topology %w (got %q)", err, cfg.Model.Head.Topology)
	}
	var d design
	switch s := cfg.Model.System; s {
	case "albef":
		d = albef(cfg, o, space)
	case "clip":
		d = clip(cfg, o, space)
	case "matching":
		d = matchingSystem(cfg, o, space)
	case "moco", "swav":
		d = views(cfg)
	case "identities":
		d = identities(cfg, space)
	case "classes":
		d = classes(cfg, space)
	case "simcse":
		d = simcse(cfg, o, space)
	case "sentence_pairs":
		d = sentencePairs(cfg, o, space)
	case "heads":
		d = heads(cfg, o, space)
	case "text_encoder", "image_encoder":
		d, err = oneEncoder(cfg, o, space)
		if err != nil {
			return design{}, err
		}
	default:
		if cfg.Has(section.Fitted) {
			return design{}, config.Errors{{Path: "model.system", Value: s,
				Msg:  "has no steps, which are asked for here",
				Hint: "it is fitted at once, by trainer train; use another system"}}
		}
		return design{}, fmt.Errorf("model: there is no model.system %q: use albef, clip, matching, moco, swav, identities, classes, simcse, sentence_pairs, heads, text_encoder or image_encoder", s)
	}
	// The teacher of pairs sees the second view, where a loss reads what it makes of images.
	if cfg.Data.Views > 1 && !d.views && (cfg.Has(section.SecondView) || len(o.Losses) > 0) {
		d.image.teacher = map[string]string{batch.Images: batch.Views}
	}
	d.space = space
	var metric encoders.Metric
	if cfg.Has(section.Metric) {
		metric = metricForm(cfg)
	}
	d.interaction = cfg.Model.Interaction.Interaction(cfg.Model.Head.Dim, metric)
	if cfg.Data.CacheFeatures {
		d.image.kept, d.text.kept = d.image.frozen, d.text.frozen
	}
	return d, nil
}

// Columns returns the columns of a batch that a training step of a configuration reads,
// without building one.
func Columns(cfg config.Config) ([]batch.Column, error) {
	d, err := newDesign(cfg, Options{})
	if err != nil {
		return nil, err
	}
	all := []batch.Column{{Name: batch.IDs, Type: batch.Int32}}
	add := func(t encoders.Tower, names map[string]string) {
		for _, c := range t.Columns() {
			if other, ok := names[c.Name]; ok {
				c.Name = other
			}
			if _, known := batch.Find(all, c.Name); !known {
				all = append(all, c)
			}
		}
	}
	for _, x := range []side{d.image, d.text} {
		add(x.trained(), x.column)
		if d.teacher {
			add(x.trained(), x.teacher)
		}
	}
	for _, x := range []struct {
		text batch.Text
		read bool
	}{{batch.PositiveText, cfg.Has(section.Positives) || cfg.Has(section.SentencePairs) && !cfg.JointPairs()},
		{batch.NegativeText, cfg.Has(section.Negatives)}} {
		if x.read {
			add(d.text.trained(), map[string]string{batch.Tokens: x.text.Tokens, batch.Lengths: x.text.Lengths})
		}
	}
	host := newHost(cfg, Options{})
	for _, s := range cfg.Losses() {
		if c, ok := s.(objectives.Columned); ok {
			all = append(all, c.Columns(host)...)
		}
	}
	if cfg.MixesSentences() {
		all = append(all, batch.Column{Name: batch.Paired, Type: batch.Int32})
	}
	if d.crops.count > 0 {
		all = append(all, d.crops.column())
	}
	if g := cfg.Objective.Geometric; g.On() && cfg.Has(section.Stored) {
		near := func(name string, read bool) {
			if read {
				all = append(all, batch.Column{Name: name, Shape: []int{g.Neighbours}, Type: batch.Int32})
			}
		}
		near(batch.ImageNeighbours, g.Images())
		near(batch.TextNeighbours, g.Texts())
	}
	return all, nil
}
