package model

import (
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// Options is what a model needs besides its configuration.
type Options struct {
	Engine *compute.Engine // stays the caller's
	Vocab  int             // V, tokens of the vocabulary; 0 for a system without texts
	MaskID int32           // of masked language modelling
	// Specials are the ids that masked language modelling does not hide besides the first of a text.
	Specials []int32
	// Begin and End are the tokens that stand around the words of every text, such as 1 and 0 of [CLS] alone.
	Begin, End int
	// BeginID begins the texts that a decoder writes and EndID ends them, such as [CLS] and [SEP]; -1: there is none.
	BeginID, EndID int32
	// Pad is the id of padding, whose embedding is not learned; -1: texts have that token too.
	Pad int
	// Start gives values that parameters start from in training, such as those of another program; those that it has
	// not start from random numbers. Several goroutines read it, while the model is made. nil: all are random.
	Start Source
	// Image and Text take the place of the towers of the configuration's system, under its
	// heads: a modality of its own, such as regions of an image. nil: those of the system.
	Image, Text encoders.Tower
	// Losses come after those of the configuration, each for one model alone.
	Losses []objectives.Loss
	// Group is the processes that train the model together; nil: this one alone.
	Group parallel.Group
	// ImagePool and TextPool hold the points of the geometric term over stored features, by
	// the rows that the columns batch.ImageNeighbours and TextNeighbours name, and the rows
	// that objective.klot.rows are drawn from. nil without either.
	ImagePool, TextPool batch.Pool
	// ImageCentre (D) and TextCentre (E) are what model.heads.center subtracts from stored
	// features; nil: zeros. Rows of the pools are centred already.
	ImageCentre, TextCentre []float32
	// Connector judges hard negatives in training (objective.mafa), or nil. A model without
	// the one that its configuration names evaluates as well, but does not train.
	Connector *Connector
	// Teacher is the frozen model of objective.distill_scores, opened for inference, or nil: a model without the one
	// that its configuration names evaluates as well, but does not train. It belongs to this model from then on.
	Teacher *Model
	// Reference is the alignment of stored features that objective.klot keeps to, fitted
	// before training; nil without it.
	Reference *objectives.Reference
	// Classes are the names of the classes that objective.classes tells, in the order of their numbers; nil: there are
	// none.
	Classes []string
}

// Model is a system: towers with heads for two sides, what scores their pairs, and the parameters, which training and
// every use share. What the systems of model.system are made of is a design each (designs.go). Its parts compile what
// they are asked for once and keep it, see program.
type Model struct {
	cfg    config.Config
	o      Options
	design design
	engine *kernel.Engine
	params *Params

	image, text *Encoder
	interaction *Interaction
	matcher     *Matcher
	classifier  *Classifier // nil without
	writer      *Writer     // nil without
	explainer   *Explainer
	programs    []interface{ forget() error }
}

// Open returns a model for inference with stored parameters. It reads those that an
// evaluation asks for, when it does, and compiles no training step.
func Open(cfg config.Config, o Options, from Source) (*Model, error) {
	if o.Engine == nil {
		return nil, errNoEngine
	}
	return modelOf(cfg, o, readParams(from))
}

// errNoEngine says that there is nothing to compute with.
var errNoEngine = errors.New("model: Options.Engine is nil: give one of compute.New")

// modelOf returns a model whose computations ask params for what they need.
func modelOf(cfg config.Config, o Options, params *Params) (*Model, error) {
	if err := o.Connector.check(cfg, o.Vocab); err != nil {
		return nil, err
	}
	if o.Group == nil {
		o.Group = parallel.Single{}
	}
	d, err := newDesign(cfg, o)
	if err != nil {
		return nil, err
	}
	if d.views && (o.Image != nil || o.Text != nil) {
		return nil, fmt.Errorf("model: model.system %q takes no towers of its own: it reads images", cfg.Model.System)
	}
	if o.Image != nil {
		d.image.tower = o.Image
	}
	if o.Text != nil {
		d.text.tower = o.Text
	}
	m := &Model{cfg: cfg, o: o, design: d, engine: o.Engine, params: params}
	m.image, m.text = newEncoder(m, &m.design.image), newEncoder(m, &m.design.text)
	m.interaction, m.matcher, m.explainer = newTokenInteraction(m), newMatcher(m), newExplainer(m)
	m.classifier, m.writer = newClassifier(m), newWriter(m)
	return m, nil
}

// Close gives memory of a device back. Computations that are asked for afterwards are compiled anew.
func (m *Model) Close() error {
	if onDevice(m.engine) == nil {
		return nil
	}
	errs := []error{m.params.placed.close(), m.params.held.close()}
	m.params.placed = nil
	for _, p := range m.programs {
		errs = append(errs, p.forget())
	}
	m.image.Forget()
	m.text.Forget()
	return cause.Join(errs...)
}

// Params returns the parameters.
func (m *Model) Params() *Params { return m.params }

// Image and Text encode one side for inference.
func (m *Model) Image() *Encoder { return m.image }

// Text encodes the other side; see Image.
func (m *Model) Text() *Encoder { return m.text }

// Interaction scores pairs by their tokens; nil of a model that compares features.
func (m *Model) Interaction() *Interaction {
	if m.design.interaction == nil {
		return nil
	}
	return m.interaction
}

// Matcher returns the match head over fused pairs, nil without one.
func (m *Model) Matcher() *Matcher {
	if m.design.fusion == nil {
		return nil
	}
	if m.params.source != nil {
		if !m.params.source.Has(objectives.MatchWeight) {
			return nil
		}
	} else if _, ok := m.params.Get(objectives.MatchWeight); !ok {
		return nil
	}
	return m.matcher
}

// Classifier returns the classifier of rows, nil where the model was not fine-tuned to have one.
func (m *Model) Classifier() *Classifier { return m.classifier }

// Writer returns the decoder of texts, nil without one.
func (m *Model) Writer() *Writer { return m.writer }

// Explainer says what scores rest on.
func (m *Model) Explainer() *Explainer { return m.explainer }

// Space returns the space of the features.
func (m *Model) Space() space.Space { return m.design.space }

// Dim returns C, the channels of the shared space.
func (m *Model) Dim() int { return m.cfg.Model.Head.Dim }

// Vocab returns V, the size of the vocabulary; 0 without texts.
func (m *Model) Vocab() int { return m.o.Vocab }

// Config returns the configuration that the model was built from.
func (m *Model) Config() config.Config { return m.cfg }

// Temperature returns the temperature that scores are divided by in training, 0 where the model has none. Of a model that
// was opened it reads the parameter; the error is that of the store.
func (m *Model) Temperature() (float64, error) {
	for _, name := range []string{objectives.LogScaleName, objectives.TemperatureName} {
		if _, _, err := m.params.stored(name); err != nil {
			return 0, err
		}
	}
	return temperature(m.params), nil
}

// hasPatches says whether images are patches, or places of a residual network, in a square.
func (m *Model) hasPatches() bool {
	switch m.design.image.tower.(type) {
	case encoders.ImageTower, encoders.ResNetTower, encoders.ConvNetTower:
		return true
	}
	return false
}

// fuse runs the fusion layers over pairs, in a computation for inference.
func (m *Model) fuse(n *net, tap encoders.Tap, a encoders.FusionArgs) *gorgonia.Node {
	c := &encoders.Context{}
	return m.design.fusion.Fusion(c, tuned(m.cfg.Model, n.root().In(m.design.text.name), c).Tapped(tap), a)
}
