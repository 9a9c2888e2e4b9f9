package model

import (
	"fmt"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
)

// Options is what a model needs besides its configuration.
type Options struct {
	Engine *compute.Engine // stays the caller's
	Vocab  int             // V, tokens of the vocabulary; 0 for a system without texts
	MaskID int32           // of masked language modelling
	// Image and Text take the place of the towers of the configuration's system, under its
	// heads: a modality of its own, such as regions of an image. nil: those of the system.
	Image, Text encoders.Tower
	// Losses come after those of the configuration, each for one model alone.
	Losses []objectives.Loss
	// Group is the processes that train the model together; nil: this one alone.
	Group parallel.Group
	// Connector judges hard negatives in training (objective.mafa), or nil. A model without
	// the one that its configuration names evaluates as well, but does not train.
	Connector *Connector
}

// Pairs is a system of pairs: a tower for each side, with or without a momentum teacher, a
// queue of past features, fusion layers, and losses. What the systems of model.system are
// made of is a design each (albef.go, clip.go, views.go, heads.go); everything else they
// share.
type Pairs struct {
	cfg    config.Config
	o      Options
	design design
	engine *kernel.Engine
	params *Params
	queue  *Queue     // nil without one
	graphs *Graphs    // over the queue; nil unless an objective reads them
	step   *trainStep // the compiled training step; nil in a model for inference

	image, text *Encoder
	pairs       map[[2]int]*pairGraph // of the match head, for inference
	keys        keys
}

// keys are the features of an update's micro-batches, which enter the queue with the
// update: one that is not made leaves the queue as it was.
type keys struct {
	Keys
	ids   []int32
	micro int
}

// design is what a system is made of.
type design struct {
	image, text side
	teacher     bool           // both sides have momentum twins
	fusion      *encoders.BERT // layers over pairs, or nil
	// views: the sides are two views of an image. Only what a loss reads is encoded, the
	// queue holds one ring, and the batch enters the queue before it is compared.
	views bool
	// keys returns what enters the queue with a batch.
	keys func(s *objectives.Step) keyNodes
}

// side is one side of a design.
type side struct {
	name  string // of the tower's parameters
	head  encoders.Head
	proj  string // of the head's parameters
	tower encoders.Tower
	// column and teacher rename columns of the tower to those of the batch that the online
	// side and the teacher's read, where they are others.
	column, teacher map[string]string
}

// New builds a model with freshly initialised parameters and compiles its training step.
func New(cfg config.Config, o Options) (*Pairs, error) {
	p, err := newPairs(cfg, o, NewParams(cfg.Run.Seed, cfg.Momentum.Enabled))
	if err != nil {
		return nil, err
	}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if err := p.buildStep(); err != nil {
		return nil, err
	}
	return p, p.Before(0)
}

// Open returns a model for inference with stored parameters. It reads those that an
// evaluation asks for, when it does, and compiles no training step.
func Open(cfg config.Config, o Options, from Source) (*Pairs, error) {
	return newPairs(cfg, o, readParams(from))
}

func newPairs(cfg config.Config, o Options, params *Params) (*Pairs, error) {
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
		return nil, fmt.Errorf("model: model.system %q takes no towers of its own: its views are those of images", cfg.Model.System)
	}
	if o.Image != nil {
		d.image.tower = o.Image
	}
	if o.Text != nil {
		d.text.tower = o.Text
	}
	p := &Pairs{cfg: cfg, o: o, design: d, engine: o.Engine, params: params}
	p.image, p.text = &Encoder{p: p, side: &p.design.image}, &Encoder{p: p, side: &p.design.text}
	return p, nil
}

// newDesign is the table of the systems.
func newDesign(cfg config.Config, o Options) (design, error) {
	if _, err := cfg.Model.Head.Space(); err != nil {
		return design{}, fmt.Errorf("model: model.head.topology %w", err)
	}
	switch s := cfg.Model.System; s {
	case "albef":
		return albef(cfg, o), nil
	case "clip":
		return clip(cfg, o), nil
	case "moco", "swav":
		return views(cfg), nil
	case "heads":
		return heads(cfg), nil
	default:
		return design{}, fmt.Errorf("model: there is no model.system %q: use albef, clip, moco, swav or heads", s)
	}
}

// newQueue makes the queue and the graphs over it.
func (p *Pairs) newQueue() error {
	cfg := p.cfg
	if cfg.Queue.Size == 0 {
		return nil
	}
	if err := (Footprint{Queue: p.queueBytes()}).fits(); err != nil {
		return err
	}
	space, _ := cfg.Model.Head.Space()
	n, dim, spheres := cfg.Queue.Size, cfg.Model.Head.Dim, space.Spheres
	var text []float32
	if !p.design.views {
		text = make([]float32, n*dim)
	}
	p.queue = newQueue(n, dim, spheres, cfg.Run.Seed, text)
	p.keepBackbone()
	if !cfg.Objective.UsesGraph() {
		return nil
	}
	var err error
	p.graphs, err = newGraphs(cfg, p.queue, p.engine)
	p.queue.graphs = p.graphs
	return err
}

// Columns are the columns of a batch that a training step reads.
func (p *Pairs) Columns() []batch.Column {
	all, err := batch.Union(p.step.inputs.Columns(), []batch.Column{{Name: batch.IDs, Type: batch.Int32}})
	if err != nil {
		panic(err) // the step's inputs have one column of a name
	}
	return all
}

// Before prepares what a step reads besides parameters and batch: it rebuilds the graphs
// over the queue where they are due, and has the losses start. update is the number of
// updates made before.
func (p *Pairs) Before(update int) error {
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Starter); ok {
			x.Start(update)
		}
	}
	if p.graphs == nil || update < p.cfg.Queue.StartSteps {
		return nil
	}
	return p.graphs.before(update)
}

// Step computes losses and gradients of a micro-batch, the gradients in Params.Grads. It
// changes no state: what the batch brings enters the queue in After. The result is reused
// by the next step.
func (p *Pairs) Step(s *feed.Step) (*Result, error) {
	if p.o.Connector == nil && p.cfg.Objective.MAFA.Connector != "" {
		return nil, fmt.Errorf("model: %s: this model was built without its connector: give it in Options to train it", connectorKey)
	}
	if err := p.step.inputs.Fill(p.step.machine, s); err != nil {
		return nil, err
	}
	return p.run(s)
}

// run is Step with inputs that are filled.
func (p *Pairs) run(s *feed.Step) (*Result, error) {
	if err := p.step.run(); err != nil {
		return nil, err
	}
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.GradientFilter); ok {
			x.FilterGradients(s.Update)
		}
	}
	r, err := p.step.read()
	if err != nil {
		return nil, err
	}
	if p.graphs != nil {
		r.Parts = append(r.Parts, p.graphs.values...)
	}
	return r, p.keep(s)
}

// keep remembers what the batch brings to the queue.
func (p *Pairs) keep(s *feed.Step) error {
	if s.Micro == 0 {
		p.keys.Clear()
		p.keys.ids, p.keys.micro = p.keys.ids[:0], 0
	}
	if p.queue == nil {
		return nil
	}
	k, err := p.Features()
	if err != nil {
		return err
	}
	return p.keys.add(p.o.Group, k, s.Batch.Ints(batch.IDs))
}

// add appends what a micro-batch brings, on all processes that of all of them.
func (k *keys) add(g parallel.Group, x Keys, ids []int32) (err error) {
	for _, part := range []struct {
		to   *[]float32
		from []float32
	}{{&k.Image, x.Image}, {&k.Text, x.Text}, {&k.ImageBackbone, x.ImageBackbone}, {&k.TextBackbone, x.TextBackbone}} {
		if *part.to, err = g.Gather(*part.to, part.from); err != nil {
			return err
		}
	}
	k.micro++
	k.ids, err = g.GatherInts(k.ids, ids)
	return err
}

// Features returns what the last step's batch brings to the queue. The next step
// overwrites it.
func (p *Pairs) Features() (k Keys, err error) { return p.step.keys.read(p.step.machine) }

// After is called when an update was made: it clamps the temperature and lets the features
// of all micro-batches into the queue at once, so that each micro-batch saw the same queue.
//
// ALBEF's code clamps the temperature at the start of the next forward pass; doing it at
// the end of the update gives the same numbers and leaves nothing half done when a step
// fails.
func (p *Pairs) After() error {
	p.ClampTemperature()
	if p.queue == nil || p.keys.micro == 0 {
		return nil
	}
	n := p.keys.micro
	rows := len(p.keys.ids) / n
	for k := range n {
		if err := p.queue.Push(p.keys.Part(k, n), p.keys.ids[k*rows:][:rows]); err != nil {
			return err
		}
	}
	p.keys.Clear()
	p.keys.ids, p.keys.micro = p.keys.ids[:0], 0
	return nil
}

// Close ends work that goes on beside the steps.
func (p *Pairs) Close() error {
	if p.graphs == nil {
		return nil
	}
	return p.graphs.close()
}

// Params returns the parameters.
func (p *Pairs) Params() *Params { return p.params }

// Queue returns the queue of features, or nil.
func (p *Pairs) Queue() *Queue { return p.queue }

// Graphs returns the graphs over the queue, or nil.
func (p *Pairs) Graphs() *Graphs { return p.graphs }

// Learnable says whether training changes a parameter.
func (p *Pairs) Learnable(name string) bool { return p.step.learnable[name] }

// Machine returns the compiled training step, for profiles; nil in a model for inference.
func (p *Pairs) Machine() *compute.Machine {
	if p.step == nil {
		return nil
	}
	return p.step.machine
}

// Passes returns how the time of the steps since Machine().ResetProfile was spent: the
// forward pass up to the loss, and the backward pass, with what it computes again.
func (p *Pairs) Passes() (forward, backward time.Duration) {
	return p.step.machine.Passes(p.step.loss)
}

// Chance returns the parts of the loss whose value without any knowledge is known.
func (p *Pairs) Chance() []Part {
	var known []Part
	for _, x := range p.step.parts {
		if x.Chance > 0 {
			known = append(known, Part{Name: x.Name, Value: x.Chance})
		}
	}
	return known
}

// Image and Text encode one side for inference.
func (p *Pairs) Image() *Encoder { return p.image }

// Text encodes the other side; see Image.
func (p *Pairs) Text() *Encoder { return p.text }

// Dim returns C, the channels of the shared space.
func (p *Pairs) Dim() int { return p.cfg.Model.Head.Dim }

// Vocab returns V, the size of the vocabulary; 0 without texts.
func (p *Pairs) Vocab() int { return p.o.Vocab }

// Config returns the configuration that the model was built from.
func (p *Pairs) Config() config.Config { return p.cfg }

// Temperature returns the temperature that scores are divided by.
func (p *Pairs) Temperature() float64 { return temperature(p.params) }

// ClampTemperature keeps the temperature in its range. With
// objective.itc.log_temperature the scale 1/temperature is capped, as CLIP caps it.
func (p *Pairs) ClampTemperature() { clampTemperature(p.params, p.cfg) }

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
		add(x.tower, x.column)
		if d.teacher {
			add(x.tower, x.teacher)
		}
	}
	return all, nil
}
