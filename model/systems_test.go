package model

import (
	"context"
	"math"

	"github.com/geoalign/geoalign/internal/kernel/vector"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

const (
	temperatureName         = objectives.TemperatureName
	geodesicTemperatureName = objectives.GeodesicTemperatureName
	logScaleName            = objectives.LogScaleName
	prototypesName          = objectives.PrototypesName
)

var normalize = scoring.Normalize

// Batch is the data of one training step, with what the step would draw itself: which
// tokens are masked.
type Batch struct {
	Images  []float32 // (B, 3, size, size)
	Views   []float32 // (B, 3, size, size) second views of the images; nil with data.views = 1
	Second  []float32 // (B, 3, size, size) second pictures
	Labels  []int32   // (B) classes
	Tokens  []int32   // (B, L) ids, padded
	Lengths []int32   // (B) tokens that are no padding
	// Positives and Negatives (B, L) are further texts of each row, with their lengths.
	Positives, PositiveLengths, Negatives, NegativeLengths []int32
	IDs                                                    []int32 // (B) image ids, for multi-positive targets and the queue

	// ImageFeatures and TextFeatures (B, D) are the data of heads.
	ImageFeatures, TextFeatures []float32
	// ImageNeighbours and TextNeighbours (B, K) are rows of the pools of heads.
	ImageNeighbours, TextNeighbours []int32

	// The tokens with some masked, and M selected places (b*L + l) with their labels,
	// padded with -100. nil leaves what the step drew.
	Masked     []int32 // (B, L)
	MaskPlaces []int32 // (M)
	MaskLabels []int32 // (M)
}

// Control is what changes a step besides the data, which a step sets by its schedules.
type Control struct {
	Step     int     // counter of the random streams
	Alpha    float64 // weight of the teacher's soft targets
	Uniform  float64 // share of the uniform distribution in the targets of the contrast
	UseQueue bool    // whether the contrast reads the queue
}

// newModel builds the model of a configuration over the vocabulary of the goldens, for
// training.
func newModel(cfg config.Config, e *kernel.Engine) (*Trainer, error) {
	return newConnected(cfg, e, nil)
}

// newConnected is newModel with a connector, or nil.
func newConnected(cfg config.Config, e *kernel.Engine, c *Connector) (*Trainer, error) {
	o := Options{Engine: e, Vocab: tinyVocab, MaskID: 4, Connector: c}
	if cfg.Objective.TCL.Local {
		o.Begin = 1 // [CLS], which is no part of a text
	}
	return New(cfg, o)
}

// feed is what Step reads of a batch.
func (p *Trainer) feed(b Batch, c Control) *feed.Step {
	x := batch.New(p.cfg.Train.BatchSize, p.Columns()...)
	for name, values := range map[string][]float32{
		batch.Images: b.Images, batch.Views: b.Views, batch.SecondImages: b.Second, batch.ImageFeatures: b.ImageFeatures, batch.TextFeatures: b.TextFeatures,
	} {
		x.SetFloats(name, values)
	}
	for name, values := range map[string][]int32{batch.Tokens: b.Tokens, batch.Lengths: b.Lengths, batch.IDs: b.IDs,
		batch.SecondTokens: b.Positives, batch.SecondLengths: b.PositiveLengths, batch.ThirdTokens: b.Negatives, batch.ThirdLengths: b.NegativeLengths,
		batch.ImageNeighbours: b.ImageNeighbours, batch.TextNeighbours: b.TextNeighbours} {
		x.SetInts(name, values)
	}
	if b.Labels != nil { // else all are of class 0
		x.SetInts(batch.Labels, b.Labels)
	}
	return &feed.Step{Batch: x, Update: c.Step, Counter: c.Step}
}

// load fills the inputs of the training step, and then sets what the step would draw or
// schedule itself.
func (p *Trainer) load(b Batch, c Control) (*feed.Step, error) {
	s := p.feed(b, c)
	start := p.cfg.Queue.StartSteps
	defer func() { p.cfg.Queue.StartSteps = start }()
	if p.cfg.Queue.StartSteps = 0; !c.UseQueue {
		p.cfg.Queue.StartSteps = math.MaxInt
	}
	if err := p.step.inputs.Fill(p.step.machine, s); err != nil {
		return nil, err
	}
	for name, v := range map[string]float64{"alpha": c.Alpha, "uniform share": c.Uniform} {
		if x := p.floats(name); x != nil {
			x[0] = float32(v)
		}
	}
	if p.MaskRows() > 0 && b.Masked != nil {
		p.mask(b)
	}
	return s, nil
}

// mask sets the masked captions, the places where they are read and their labels.
func (p *Trainer) mask(b Batch) {
	l := int32(p.cfg.Data.Tokens)
	copy(p.ints("text")[len(b.Tokens):], b.Masked)
	first := int32(0) // fused texts before the masked ones
	if p.cfg.Objective.ITM.Weight > 0 {
		first = int32(3 * p.cfg.Train.BatchSize)
	}
	for name, first := range map[string]int32{"mask": first, "teacher mask": 0} {
		rows, texts := p.ints(name+" places"), p.ints(name+" texts")
		if rows == nil {
			continue // without distillation
		}
		for i, at := range b.MaskPlaces {
			rows[i], texts[i] = at+first*l, at/l+first
		}
	}
	copy(p.ints("mask labels"), b.MaskLabels)
}

// floats returns the memory of a float32 input of the training step, or nil.
func (p *Trainer) floats(name string) []float32 {
	x, _ := p.step.inputs.Memory(name).([]float32)
	return x
}

// ints returns the memory of an int32 input of the training step, or nil.
func (p *Trainer) ints(name string) []int32 {
	x, _ := p.step.inputs.Memory(name).([]int32)
	return x
}

// Forward is Step with a batch whose masks are given, and with the schedules of c.
func (p *Trainer) Forward(b Batch, c Control) (*Result, error) {
	s, err := p.load(b, c)
	if err != nil {
		return nil, err
	}
	return p.run(context.Background(), s)
}

// MaskRows returns M, the rows of the language-modelling loss; 0 without one.
func (p *Trainer) MaskRows() int { return len(p.ints("mask labels")) }

// UpdateMomentum moves every twin towards its parameter, as the optimiser does.
func (p *Trainer) UpdateMomentum(mom float64) {
	p.params.MomentumRuns(func(offset int, twin []float32) {
		vector.EMA(twin, p.params.values[offset:][:len(twin)], float32(1-mom))
	})
}

// Enqueue pushes what the last step's batch brings to the queue with other ids.
func (p *Trainer) Enqueue(ids []int32) error {
	k, err := p.Features()
	if err != nil || p.queue == nil {
		return err
	}
	return p.queue.Push(k, ids)
}

// EncodeImages encodes n images (n, 3, size, size).
func (p *Model) EncodeImages(images []float32, n int) (states, features []float32, err error) {
	b := batch.New(n)
	b.SetFloats(batch.Images, images)
	return p.Image().Encode(context.Background(), b)
}

// EncodeTexts encodes n texts (n, L) of lengths (n).
func (p *Model) EncodeTexts(tokens, lengths []int32, n int) (states, features []float32, err error) {
	b := batch.New(n)
	b.SetInts(batch.Tokens, tokens)
	b.SetInts(batch.Lengths, lengths)
	return p.Text().Encode(context.Background(), b)
}

// EncodeFeatures passes n feature rows (n, D) of images or texts through their head.
func (p *Model) EncodeFeatures(e *Encoder, rows []float32, n int) ([]float32, error) {
	b := batch.New(n)
	b.SetFloats(e.Columns()[0].Name, rows)
	_, features, err := e.Encode(context.Background(), b)
	return features, err
}

// iota32 counts n values from start on in steps.
func iota32(start, n, step int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(start + i*step)
	}
	return x
}

// memorySource gives the parameters of a model in memory.
type memorySource struct {
	p    *Params
	read []string // names so far
}

// Has implements Source.
func (s *memorySource) Has(name string) bool {
	_, ok := s.p.Get(name)
	return ok
}

// Read implements Source.
func (s *memorySource) Read(name string, shape []int, dst []float32) error {
	s.read = append(s.read, name)
	q, ok := s.p.Get(name)
	if !ok {
		return &missingParameter{name}
	}
	copy(dst, s.p.Value(q))
	return nil
}

type missingParameter struct{ name string }

// Error names the parameter.
func (e *missingParameter) Error() string { return "there is no parameter " + e.name }
