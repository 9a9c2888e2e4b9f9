package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// CLIP is a dual encoder (Radford et al. 2021) with the towers and heads of clip-mtob
// (its section 3.1): a pre-norm vision transformer and a post-norm text encoder,
// each with a projection without bias onto the topology of model.head, trained by
// symmetric contrast within the batch alone.
//
// B pairs, L tokens of a text, D the width of a tower, C = model.head.dim channels, m
// class tokens of a tower.
type CLIP struct {
	dual
	train clipGraph
}

// clipGraph is the compiled training step.
type clipGraph struct {
	outcome
	batch, tokens             int
	images, ids, lengths, own *gorgonia.Node
	imageIDs                  *gorgonia.Node // nil unless they say what is a positive
	key                       [2]int32
	ownColumns                []int32
	blocks                    blocks
}

// clipEps is the epsilon of the towers' layer norms, PyTorch's default.
const clipEps = 1e-5

// NewCLIP builds the model of a configuration whose model.system is clip, for a
// vocabulary of vocab tokens, with freshly initialised parameters. The engine stays the
// caller's.
func NewCLIP(cfg config.Config, vocab int, engine *compute.Engine) (*CLIP, error) {
	if cfg.Model.System != "clip" {
		return nil, fmt.Errorf(`model: model.system must be "clip" (got %q)`, cfg.Model.System)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	im, tx := cfg.Model.Image, cfg.Model.Text
	head := newHead(cfg)
	head.NoBias, head.Gaussian = true, true
	m, blocks := head.Classes(), cfg.Model.Head.TokenBlocks
	c := &CLIP{dual: dual{
		cfg: cfg, engine: engine, params: NewParams(cfg.Run.Seed, func(string) bool { return false }), head: head,
		vit: encoders.ViT{
			Size: im.Size, Patch: im.Patch, Depth: im.Depth, Width: im.Width, Heads: im.Heads, MLP: im.MLP,
			Classes: m, TokenBlocks: blocks, NoPatchBias: true, PreNorm: true, Eps: clipEps, TorchStart: true,
		},
		bert: encoders.BERT{
			Vocab: vocab, Positions: tx.Positions, Layers: tx.Layers, Width: tx.Width, Heads: tx.Heads, MLP: tx.MLP, Dropout: tx.Dropout,
			Classes: m, TokenBlocks: blocks, NoTokenType: true, FinalNorm: true, Eps: clipEps, TorchStart: true,
		},
	}}
	if err := c.buildTrain(); err != nil {
		return nil, err
	}
	return c, nil
}

// buildTrain builds and compiles the training step. The final norm and the last block run
// over class tokens alone: nothing else is read.
func (m *CLIP) buildTrain() (err error) {
	defer op.Catch(&err)
	cfg, tg := m.cfg, &m.train
	tg.batch, tg.tokens = cfg.Train.BatchSize, cfg.Data.Tokens
	b := newGraph(m.params)
	s := encoders.NewScope(b.params)
	if cfg.Compute.Recompute {
		s = s.Marked(tg.blocks.mark(b.g))
	}
	c := &encoders.Context{}
	var key *gorgonia.Node
	if m.bert.Dropout > 0 {
		key = b.ints("dropout key", 2)
		c.DropoutKey = key
	}
	tg.images = b.floats("images", tg.batch, 3, m.vit.Size, m.vit.Size)
	tg.ids, tg.lengths = b.ints("text", tg.batch*tg.tokens), b.ints("lengths", tg.batch)
	image := m.head.Forward(s.In("image_proj"), m.vit.Class(s.In("image"), tg.images), m.head.Classes()) // (B, C)
	_, classes := m.bert.TextClasses(c, s.In("text"), tg.ids, tg.lengths, tg.tokens, false)              // (B*m, D)
	text := m.head.Forward(s.In("text_proj"), classes, m.head.Classes())                                 // (B, C)

	var positives objectives.Positives
	if cfg.Objective.ITC.Positives == "id" {
		tg.imageIDs = b.ints("image ids", tg.batch)
		positives = objectives.Positives{RowIDs: tg.imageIDs, ColIDs: tg.imageIDs}
	} else {
		tg.own = b.ints("own columns", tg.batch)
		positives = objectives.Positives{Labels: tg.own}
	}
	loss := objectives.InBatchContrast(image, text, scorer{cfg: cfg, on: s}.score(cfg.PairTerms(), false), positives).Loss
	tg.parts = []namedNode{{name: "itc_in_batch", node: loss}}
	tg.loss = arith.WeightedSum([]float32{float32(cfg.Objective.ITC.InBatchWeight)}, loss)

	x := exec.Config{Engine: m.engine, CheckNaN: cfg.Compute.CheckNaN, Recompute: exec.Recompute{Blocks: tg.blocks.list}}
	if err := tg.compile(b, frozenTemperature(cfg), 0, x); err != nil {
		return err
	}
	if key != nil {
		if err := tg.machine.SetInput(key, tg.key[:]); err != nil {
			return err
		}
	}
	if tg.own == nil {
		return nil
	}
	tg.ownColumns = iota32(0, tg.batch, 1)
	return tg.machine.SetInput(tg.own, tg.ownColumns)
}

// Forward runs one training step up to the gradients, which are in Params.Grads. It
// changes no state. The result is reused by the next step.
func (m *CLIP) Forward(b Batch, c Control) (*Result, error) {
	if err := m.train.load(b); err != nil {
		return nil, err
	}
	k := rng.New(m.cfg.Run.Seed, rng.Dropout, uint64(c.Step)).Uint64()
	m.train.key[0], m.train.key[1] = int32(uint32(k)), int32(uint32(k>>32))
	if err := m.train.run(); err != nil {
		return nil, err
	}
	return m.train.read()
}

// load binds a batch.
func (tg *clipGraph) load(b Batch) error {
	if want := tg.images.Shape().TotalSize(); len(b.Images) != want {
		return batchError("images", len(b.Images), want)
	}
	if err := tg.machine.SetInput(tg.images, b.Images); err != nil {
		return err
	}
	for _, in := range []struct {
		name string
		node *gorgonia.Node
		data []int32
		want int
	}{
		{"tokens", tg.ids, b.Tokens, tg.batch * tg.tokens},
		{"lengths", tg.lengths, b.Lengths, tg.batch},
		{"image ids", tg.imageIDs, b.IDs, tg.batch},
	} {
		if in.node == nil {
			continue
		}
		if len(in.data) != in.want {
			return batchError(in.name, len(in.data), in.want)
		}
		if err := tg.machine.SetInput(in.node, in.data); err != nil {
			return err
		}
	}
	return nil
}

// Learnable says whether training changes a parameter.
func (m *CLIP) Learnable(name string) bool { return m.train.learnable[name] }

// Before does nothing: a step reads parameters and batch alone.
func (m *CLIP) Before(int) error { return nil }

// Queue returns nil: there is no queue.
func (m *CLIP) Queue() *Queue { return nil }

// Graphs returns nil: there is no queue that they could span.
func (m *CLIP) Graphs() *Graphs { return nil }

// MomentumFeatures returns nothing: there is no teacher.
func (m *CLIP) MomentumFeatures() (Keys, error) { return Keys{}, nil }

// Machine returns the compiled training step, for profiles.
func (m *CLIP) Machine() *compute.Machine { return m.train.machine }

// Passes returns the time of the forward and of the backward pass, as ALBEF's does.
func (m *CLIP) Passes() (forward, backward time.Duration) { return m.train.passes() }

// Footprint returns the memory of training this model.
func (m *CLIP) Footprint() Footprint { return m.params.footprint(0).with(&m.train.outcome) }

// Close does nothing: no work goes on beside the steps.
func (m *CLIP) Close() error { return nil }

// HasMatching is false: pairs are compared by their features alone.
func (m *CLIP) HasMatching() bool { return false }

// Match fails: a dual encoder has no match head.
func (m *CLIP) Match([]float32, []int32, []int32, []float32, int, int) ([]float32, error) {
	return nil, errors.New(`model: model.system "clip" has no match head: set eval.rerank_top = 0`)
}
