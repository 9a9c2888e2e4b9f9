package model

import (
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops"
	"gorgonia.org/gorgonia"
)

// Views is what the systems of images alone, MoCo and SwAV, have in common: a vision
// transformer whose class token passes an MLP of one hidden layer and ReLU to the unit
// sphere (Chen et al. 2020), a queue of features and a graph over it. There is no batch
// normalisation: the transformer and its head have none.
//
// B images, D the width of a token, T tokens of an image, C = model.head.dim.
type Views struct {
	cfg    config.Config
	engine *kernel.Engine
	params *Params
	queue  *Queue  // nil without one
	graphs *Graphs // over the queue; nil unless the score reads them

	vit  encoders.ViT
	head encoders.MLP

	train viewsGraph
	eval  map[int]*imageGraph
}

// viewsGraph is the compiled training step. pushed is what enters the queue.
type viewsGraph struct {
	outcome
	batch  int
	views  [2]*gorgonia.Node // (B, 3, size, size)
	pushed *gorgonia.Node    // (B, C)
	pool   poolInputs
}

// newViews returns the common part for a configuration. twin says which parameters have a
// momentum twin.
func newViews(cfg config.Config, engine *kernel.Engine, twin func(name string) bool) (*Views, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	im, hidden := cfg.Model.Image, cfg.Model.Views.Hidden
	if hidden == 0 {
		hidden = im.Width
	}
	v := &Views{
		cfg: cfg, engine: engine, params: NewParams(cfg.Run.Seed, twin),
		vit:  encoders.ViT{Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP},
		head: encoders.MLP{Hidden: hidden, Out: cfg.Model.Head.Dim, Activation: "relu"},
		eval: map[int]*imageGraph{},
	}
	if cfg.Queue.Size == 0 {
		return v, nil
	}
	if err := (Footprint{Queue: queueBytes(cfg)}).fits(); err != nil {
		return nil, err
	}
	v.queue = NewImageQueue(cfg.Queue.Size, cfg.Model.Head.Dim, cfg.Run.Seed)
	if cfg.Objective.UsesGraph() {
		var err error
		if v.graphs, err = newGraphs(cfg, v.queue, engine); err != nil {
			return nil, err
		}
		v.queue.graphs = v.graphs
	}
	return v, nil
}

// viewsBuilder is a training step under construction.
type viewsBuilder struct {
	*graph
	v       *Views
	on, mom encoders.Scope
	fixed   map[*gorgonia.Node]any // inputs that never change
	blocks  blocks
	losses  gorgonia.Nodes
	weights []float32
}

func (v *Views) newBuilder() *viewsBuilder {
	s := &viewsBuilder{v: v, graph: newGraph(v.params), fixed: map[*gorgonia.Node]any{}}
	s.on, s.mom = encoders.NewScope(s.params), encoders.NewScope(s.twins)
	if v.cfg.Compute.Recompute {
		s.on = s.on.Marked(s.blocks.mark(s.g))
	}
	tg := &v.train
	tg.batch = v.cfg.Train.BatchSize
	for i, name := range []string{"images", "second views"} {
		tg.views[i] = s.floats(name, tg.batch, 3, v.vit.Size, v.vit.Size)
	}
	return s
}

// features encodes images (B, 3, size, size) into unit rows (B, C).
func (s *viewsBuilder) features(p encoders.Scope, images *gorgonia.Node) *gorgonia.Node {
	class := s.v.vit.Class(p.In("image"), images) // (B, D)
	return s.v.head.Forward(&encoders.Context{}, p.In("image_proj"), class)
}

// add adds a loss to the total.
func (s *viewsBuilder) add(name string, weight float64, loss *gorgonia.Node) {
	s.losses, s.weights = append(s.losses, loss), append(s.weights, float32(weight))
	s.v.train.parts = append(s.v.train.parts, namedNode{name: name, node: loss})
}

// score is the score of the contrast or the prediction.
func (s *viewsBuilder) score() objectives.Score {
	return scorer{cfg: s.v.cfg, on: s.on}.score(s.v.cfg.Objective.ScoreTerms(), false)
}

// compile compiles the step and binds its inputs.
func (s *viewsBuilder) compile() error {
	v, tg := s.v, &s.v.train
	tg.loss = ops.WeightedSum(s.weights, s.losses...)
	c := exec.Config{Engine: v.engine, CheckNaN: v.cfg.Compute.CheckNaN, Recompute: exec.Recompute{Blocks: s.blocks.list}}
	c.Outputs = gorgonia.Nodes{tg.pushed}
	if err := tg.outcome.compile(s.graph, frozenTemperature(v.cfg), queueBytes(v.cfg), c); err != nil {
		return err
	}
	for n, values := range s.fixed {
		if err := tg.machine.SetInput(n, values); err != nil {
			return err
		}
	}
	return tg.pool.bind(tg.machine, v)
}

// forward runs one training step up to the gradients.
func (v *Views) forward(b Batch, c Control) (*Result, error) {
	tg := &v.train
	for i, images := range [][]float32{b.Images, b.Views} {
		if want := tg.views[i].Shape().TotalSize(); len(images) != want {
			return nil, batchError([]string{"images", "second views"}[i], len(images), want)
		}
		if err := tg.machine.SetInput(tg.views[i], images); err != nil {
			return nil, err
		}
	}
	tg.pool.load(v, c)
	if err := tg.run(); err != nil {
		return nil, err
	}
	r, err := tg.read()
	if err == nil && v.graphs != nil {
		r.Parts = append(r.Parts, v.graphs.values...)
	}
	return r, err
}

// Params returns the parameters.
func (v *Views) Params() *Params { return v.params }

// Queue returns the queue of features, or nil.
func (v *Views) Queue() *Queue { return v.queue }

// Graphs returns the graph over the queue, or nil.
func (v *Views) Graphs() *Graphs { return v.graphs }

// Before rebuilds the graph over the queue where it is due, as ALBEF's does.
func (v *Views) Before(step int) error {
	if v.graphs == nil || step < v.cfg.Queue.StartSteps {
		return nil
	}
	return v.graphs.before(step)
}

// Close ends work that goes on beside the steps.
func (v *Views) Close() error {
	if v.graphs == nil {
		return nil
	}
	return v.graphs.close()
}

// MomentumFeatures returns the features (B, C) of the last batch that enter the queue,
// those of images alone. The next step overwrites them.
func (v *Views) MomentumFeatures() (Keys, error) {
	a, err := v.train.machine.Value(v.train.pushed)
	return Keys{Image: a.F32}, err
}

// Enqueue pushes these features with the ids of their batch.
func (v *Views) Enqueue(ids []int32) error {
	k, err := v.MomentumFeatures()
	if err != nil || v.queue == nil {
		return err
	}
	return v.queue.Push(k, ids)
}

// Temperature returns the temperature of the contrast or the prediction.
func (v *Views) Temperature() float64 { return temperature(v.params) }

// ClampTemperature keeps the temperature in its range.
func (v *Views) ClampTemperature() { clampTemperature(v.params, v.cfg) }

// Learnable says whether training changes a parameter.
func (v *Views) Learnable(name string) bool { return v.train.learnable[name] }

// Machine returns the compiled training step, for profiles.
func (v *Views) Machine() *compute.Machine { return v.train.machine }

// Passes returns the time of the forward and of the backward pass, as ALBEF's does.
func (v *Views) Passes() (forward, backward time.Duration) { return v.train.passes() }

// Footprint returns the memory of training this model.
func (v *Views) Footprint() Footprint {
	return v.params.footprint(queueBytes(v.cfg)).with(&v.train.outcome)
}

// ImageSize returns the side of the model's images in pixels.
func (v *Views) ImageSize() int { return v.vit.Size }

// ImageGrid returns the number of patches along a side of an image.
func (v *Views) ImageGrid() int { return v.vit.Size / v.vit.Patch }

// ImageTokens returns T, the tokens that an encoded image has.
func (v *Views) ImageTokens() int { return v.vit.Tokens() }

// ImageWidth returns D, the width of an image token.
func (v *Views) ImageWidth() int { return v.vit.Width }

// Dim returns C, the channels of the features.
func (v *Views) Dim() int { return v.head.Out }

// EncodeImages runs the encoder over n images (n, 3, size, size). It returns their token
// states (n*T, D), class token first, and unit features (n, C), which the next call with
// the same n overwrites. A graph is kept for every n: call it with few different ones.
func (v *Views) EncodeImages(images []float32, n int) (states, features []float32, err error) {
	g := v.eval[n]
	if g == nil {
		if g, err = v.imageGraph(n); err != nil {
			return nil, nil, err
		}
		v.eval[n] = g
	}
	if err := g.machine.SetInput(g.in, images); err != nil {
		return nil, nil, err
	}
	return run2(g.machine, g.states, g.pooled)
}

func (v *Views) imageGraph(n int) (g *imageGraph, err error) {
	defer ops.Catch(&err)
	b := newGraph(v.params)
	on := encoders.NewScope(b.params)
	g = &imageGraph{in: b.floats("images", n, 3, v.vit.Size, v.vit.Size)}
	g.states = v.vit.Forward(on.In("image"), g.in)                             // (n*T, D)
	class := ops.StridedRows(g.states, 0, v.vit.Tokens(), n)                   // (n, D)
	g.pooled = v.head.Forward(&encoders.Context{}, on.In("image_proj"), class) // (n, C)
	g.machine, err = exec.Compile(b.g, exec.Config{Engine: v.engine, Outputs: gorgonia.Nodes{g.states, g.pooled}})
	if err != nil {
		return nil, err
	}
	return g, b.bindParams(g.machine)
}
