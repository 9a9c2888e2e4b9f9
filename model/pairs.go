package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
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
	// Start gives values that parameters start from in training, such as those of another program; those that it has not
	// start from random numbers. Several goroutines read it, while the model is made. nil: all are random.
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
	// Tutor is the frozen model of objective.distill_scores, opened for inference, or nil: a model without the one that its
	// configuration names evaluates as well, but does not train. It belongs to this model from then on.
	Tutor *Pairs
	// Reference is the alignment of stored features that objective.klot keeps to, fitted
	// before training; nil without it.
	Reference *objectives.Reference
	// Classes are the names of the classes that objective.classes tells, in the order of their numbers; nil: there are none.
	Classes []string
}

// Pairs is a system of pairs: a tower for each side, with or without a momentum teacher, a
// queue of past features, fusion layers, and losses. What the systems of model.system are
// made of is a design each (albef.go, clip.go, views.go, heads.go); everything else they
// share.
//
// A model of Open has no training step, queue and graphs: Columns, Learnable, Before, After,
// Features, Chance, Passes and Footprint are of models of New alone, and Step says so.
type Pairs struct {
	cfg    config.Config
	o      Options
	design design
	engine *kernel.Engine
	params *Params
	queue  *Queue     // nil without one
	graphs *Graphs    // over the queue; nil unless an objective reads them
	step   *trainStep // the compiled training step; nil in a model for inference
	// cache makes the features that the step reads, of one micro-batch after the other; nil
	// where the step has the towers itself.
	cache *featureCache
	tutor *tutor // of scores, nil without one

	image, text *Encoder
	matchings   matchings
	judgings    map[int]*judging // by numbers of pairs of sentences
	explainings map[explainKey]*explaining
	heatings    map[heatKey]*heating
	readings    map[[2]int]*reading // by numbers of rows and images
	writings    map[[4]int]*writing // by what they are compiled for
	// interactions by numbers of images and texts.
	interactions map[[2]int]*interacting
	keys         keys
	ahead        *batch.Batch // of Stage
}

// New builds a model with freshly initialised parameters and compiles its training step.
func New(cfg config.Config, o Options) (*Pairs, error) {
	if o.Group == nil {
		o.Group = parallel.Single{}
	}
	if cfg.Ranks == 0 {
		cfg.Ranks = o.Group.Size()
	}
	if err := checkRanks(cfg, o.Group); err != nil {
		return nil, err
	}
	if o.Engine == nil {
		return nil, errNoEngine
	}
	params := NewParams(cfg.Run.Seed, cfg.Momentum.Enabled)
	params.start = o.Start
	p, err := newPairs(cfg, o, params)
	if err != nil {
		return nil, err
	}
	if err := p.checkVocab(); err != nil {
		return nil, err
	}
	if o.Image == nil && o.Text == nil { // whose sizes the configuration says
		f := p.estimate()
		f.Batches = 0 // the caller knows
		if d := onDevice(p.engine); d != nil {
			if err := f.fitsOn(d, p.engine.BF16()); err != nil {
				return nil, err
			}
			f.Buffers = 0
		}
		if err := f.fitsByPart(); err != nil {
			return nil, err
		}
	}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if o.Tutor != nil {
		if p.tutor, err = newTutor(o.Tutor, cfg, &p.design, cfg.RankRows()); err != nil {
			return nil, err
		}
	}
	if err := p.buildStep(); err != nil {
		return nil, err
	}
	return p, p.Before(0)
}

// checkRanks tells a batch that the processes of a group cannot share, and a configuration of other ones.
func checkRanks(cfg config.Config, g parallel.Group) error {
	if cfg.Ranks != g.Size() {
		return fmt.Errorf("model: the configuration is of %d processes, the group has %d: leave config.Config.Ranks 0 or set it to the size of the group", cfg.Ranks, g.Size())
	}
	if g.Size() == 1 {
		return nil
	}
	return cfg.CheckRanks()
}

// Open returns a model for inference with stored parameters. It reads those that an
// evaluation asks for, when it does, and compiles no training step.
func Open(cfg config.Config, o Options, from Source) (*Pairs, error) {
	if o.Engine == nil {
		return nil, errNoEngine
	}
	return newPairs(cfg, o, readParams(from))
}

// errNoEngine says that there is nothing to compute with.
var errNoEngine = errors.New("model: Options.Engine is nil: give one of compute.New")

// checkVocab refuses towers of the configuration that read tokens of no vocabulary.
func (p *Pairs) checkVocab() error {
	for _, x := range []struct {
		side *side
		own  encoders.Tower
	}{{&p.design.image, p.o.Image}, {&p.design.text, p.o.Text}} {
		if x.side.tower == nil || x.own != nil || p.o.Vocab > 0 {
			continue
		}
		if _, ok := batch.Find(x.side.tower.Columns(), batch.Tokens); ok {
			return fmt.Errorf("model: Options.Vocab is %d, but the %s tower reads tokens: give the number of tokens of the vocabulary", p.o.Vocab, x.side.name)
		}
	}
	return nil
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
		return nil, fmt.Errorf("model: model.system %q takes no towers of its own: it reads images", cfg.Model.System)
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

// Close ends work that goes on beside the steps, and gives memory of a device back.
func (p *Pairs) Close() error {
	err := p.closeDevice()
	if p.tutor != nil {
		err = cause.Join(err, p.tutor.Close())
	}
	if p.graphs != nil {
		err = cause.Join(err, p.graphs.close())
	}
	return err
}

// Group returns the processes that train the model together.
func (p *Pairs) Group() parallel.Group { return p.o.Group }

// Params returns the parameters.
func (p *Pairs) Params() *Params { return p.params }

// Queue returns the queue of features, or nil.
func (p *Pairs) Queue() *Queue { return p.queue }

// Graphs returns the graphs over the queue, or nil.
func (p *Pairs) Graphs() *Graphs { return p.graphs }

// Learnable says whether training changes a parameter.
func (p *Pairs) Learnable(name string) bool { return p.step.learnable[name] }

// Trained returns the number of values that training changes.
func (p *Pairs) Trained() (n int) {
	for _, q := range p.params.list {
		if p.Learnable(q.Name) {
			n += q.Len()
		}
	}
	return n
}

// Nodes returns the number of nodes that run for a micro-batch, with those of losses over several.
func (p *Pairs) Nodes() int {
	n := p.step.machine.Nodes()
	if p.cache != nil {
		for _, x := range p.cache.passes() {
			n += x.machine.Nodes()
		}
	}
	return n
}

// Machine returns the compiled training step, for profiles; nil in a model for inference. With
// train.accumulate = "features" it is that of the losses.
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

// Chance returns the parts of the loss whose value without any knowledge is known, with that
// value, in nats.
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

// Space returns the space of the features.
func (p *Pairs) Space() space.Space { return p.design.space }

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
