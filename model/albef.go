package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ALBEF is the system of Li et al. 2021: a vision transformer, a text encoder and a
// fusion encoder, trained by image-text contrast against a momentum teacher and a
// queue, image-text matching with hard negatives, and masked language modelling.
type ALBEF struct {
	dual
	queue  *Queue  // nil without one
	graphs *Graphs // over the queue; nil unless an objective reads them

	train *trainGraph
	pairs map[[2]int]*pairGraph // of the match head, for inference

	connector *Connector // judges hard negatives in training, or nil

	// ema is the work of UpdateMomentum, kept so that a step allocates nothing.
	ema struct {
		value, twin []float32
		w           float32
		body        func(worker, lo, hi int)
	}
}

// NewALBEF builds the model of a configuration for a vocabulary of vocab tokens,
// with freshly initialised parameters. The engine stays the caller's.
func NewALBEF(cfg config.Config, vocab int, engine *kernel.Engine) (*ALBEF, error) {
	return newALBEF(cfg, vocab, engine, nil)
}

// newALBEF builds a model with a connector, or nil.
func newALBEF(cfg config.Config, vocab int, engine *kernel.Engine, connector *Connector) (*ALBEF, error) {
	im, tx := cfg.Model.Image, cfg.Model.Text
	space, err := cfg.Model.Head.Space()
	if err != nil {
		return nil, fmt.Errorf("model: model.head.topology %w", err)
	}
	m := &ALBEF{connector: connector, dual: dual{
		cfg: cfg, engine: engine,
		vit: encoders.ViT{Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP,
			Classes: space.Classes(), TokenBlocks: cfg.Model.Head.TokenBlocks},
		bert: encoders.BERT{Vocab: vocab, Positions: tx.Positions, Layers: tx.Layers, FusionLayers: tx.FusionLayers,
			Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP, Dropout: tx.Dropout,
			Classes: space.Classes(), TokenBlocks: cfg.Model.Head.TokenBlocks},
		head: newHead(cfg),
	}}
	m.params = NewParams(cfg.Run.Seed, func(name string) bool {
		return cfg.Momentum.Enabled && hasTwin(name)
	})
	if cfg.Queue.Size > 0 {
		if err := (Footprint{Queue: queueBytes(cfg)}).fits(); err != nil {
			return nil, err
		}
		n, dim := cfg.Queue.Size, cfg.Model.Head.Dim
		m.queue = newQueue(n, dim, space.Spheres, cfg.Run.Seed, make([]float32, n*dim))
		m.keepBackbone()
		if cfg.Objective.UsesGraph() {
			var err error
			if m.graphs, err = newGraphs(cfg, m.queue, engine); err != nil {
				return nil, err
			}
			m.queue.graphs = m.graphs
		}
	}
	m.ema.body = func(_, lo, hi int) { vector.EMA(m.ema.twin[lo:hi], m.ema.value[lo:hi], m.ema.w) }
	// Building the training graph registers every parameter.
	if err := m.buildTrain(); err != nil {
		return nil, err
	}
	return m, nil
}

// hasTwin says which parameters the teacher has: both encoders with the fusion
// layers and the language-modelling head, both projections, and the learned metric,
// which is a part of how features become scores like these.
func hasTwin(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "image", "text", "image_proj", "text_proj", "gssf":
		return true
	}
	return false
}

// Queue returns the feature queue, or nil.
func (m *ALBEF) Queue() *Queue { return m.queue }

// Graphs returns the graphs over the queue, or nil.
func (m *ALBEF) Graphs() *Graphs { return m.graphs }

// Before prepares what a step reads besides parameters and batch: it rebuilds the graphs
// over the queue where they are due. step is the number of updates made before.
func (m *ALBEF) Before(step int) error {
	if m.graphs == nil || step < m.cfg.Queue.StartSteps {
		return nil
	}
	return m.graphs.before(step)
}

// Close ends work that goes on beside the steps.
func (m *ALBEF) Close() error {
	if m.graphs == nil {
		return nil
	}
	return m.graphs.close()
}

// UpdateMomentum moves every twin towards its parameter:
// theta_m = mom*theta_m + (1-mom)*theta (Li et al. 2021, section 3.2). Training does
// this together with the update, in one pass (optim.AdamW.StepTwins).
func (m *ALBEF) UpdateMomentum(mom float64) {
	w := float32(1 - mom)
	m.params.Twins(func(offset int, twin []float32) {
		m.ema.value, m.ema.twin, m.ema.w = m.params.values[offset:], twin, w
		m.engine.For(len(twin), 1<<15, m.ema.body)
	})
}

// graph is a graph under construction with its inputs.
type graph struct {
	g      *gorgonia.ExprGraph
	params *binding // online
	twins  *binding // momentum
}

func (m *ALBEF) newGraph() *graph { return newGraph(m.params) }

// newGraph starts a graph whose parameters are those of p.
func newGraph(p *Params) *graph {
	g := gorgonia.NewGraph()
	return &graph{g: g, params: p.bind(g, false), twins: p.bind(g, true)}
}

func (b *graph) floats(name string, shape ...int) *gorgonia.Node {
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.g, tensor.Float32, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

func (b *graph) ints(name string, shape ...int) *gorgonia.Node {
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.g, tensor.Int32, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.g, tensor.Int32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// normalize scales a row to unit length.
func normalize(row []float32) {
	s := float32(1 / max(math.Sqrt(vector.SumSq(row)), 1e-12))
	vector.Scale(row, s, row)
}

// batchError says that a batch does not fit the compiled graph.
func batchError(what string, got, want int) error {
	return fmt.Errorf("model: %s: got %d values, the graph was built for %d", what, got, want)
}
