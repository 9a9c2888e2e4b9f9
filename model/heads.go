package model

import (
	"fmt"

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

// Heads aligns the features of two frozen encoders: one MLP for each modality, trained
// by symmetric contrast within the batch with a learned temperature. It is the
// contrastive baseline of GeRA; sizes and dropout are those of model.heads, C is
// model.head.dim.
type Heads struct {
	cfg    config.Config
	engine *compute.Engine
	params *Params

	image, text headTower
	train       headsGraph
	eval        map[headsKey]*headsEval
}

// headTower is the head of one modality.
type headTower struct {
	name string // of its parameters
	in   int    // width of its features
	mlp  encoders.MLP
}

// Features is the data of one training step of Heads.
type Features struct {
	Image []float32 // (B, Dimage) features of the images
	Text  []float32 // (B, Dtext) features of their texts
	IDs   []int32   // (B) image ids; read with objective.itc.positives = "id" only
}

// headsGraph is the compiled training step.
type headsGraph struct {
	outcome
	batch            int
	image, text, ids *gorgonia.Node
	key              [2]int32
	own              []int32
}

// NewHeads builds the heads of a configuration whose model.system is heads, with
// freshly initialised parameters. The engine stays the caller's.
func NewHeads(cfg config.Config, engine *compute.Engine) (*Heads, error) {
	if cfg.Model.System != "heads" {
		return nil, fmt.Errorf(`model: model.system must be "heads" (got %q)`, cfg.Model.System)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := cfg.Model.Heads
	mlp := encoders.MLP{Hidden: c.Hidden, Out: cfg.Model.Head.Dim, Activation: c.Activation, Dropout: c.Dropout}
	h := &Heads{
		cfg: cfg, engine: engine, params: NewParams(cfg.Run.Seed, func(string) bool { return false }),
		image: headTower{"image_head", c.InImage, mlp}, text: headTower{"text_head", c.InText, mlp},
		eval: map[headsKey]*headsEval{},
	}
	if err := h.buildTrain(); err != nil {
		return nil, err
	}
	return h, nil
}

// forward maps features (N, D) of the tower's modality to unit rows (N, C).
func (t headTower) forward(c *encoders.Context, s encoders.Scope, x *gorgonia.Node) *gorgonia.Node {
	return t.mlp.Forward(c, s.In(t.name), x)
}

// buildTrain builds and compiles the training step.
func (h *Heads) buildTrain() (err error) {
	defer op.Catch(&err)
	cfg, tg := h.cfg, &h.train
	tg.batch = cfg.Train.BatchSize
	b := newGraph(h.params)
	s := encoders.NewScope(b.params)
	tg.image, tg.text = b.floats("image features", tg.batch, h.image.in), b.floats("text features", tg.batch, h.text.in)
	key := b.ints("dropout key", 2)
	c := &encoders.Context{DropoutKey: key}
	image := h.image.forward(c, s, tg.image) // (B, C)
	text := h.text.forward(c, s, tg.text)    // (B, C)

	own := b.ints("own columns", tg.batch)
	positives := objectives.Positives{Labels: own}
	if cfg.Objective.ITC.Positives == "id" {
		tg.ids = b.ints("image ids", tg.batch)
		positives = objectives.Positives{RowIDs: tg.ids, ColIDs: tg.ids}
	}
	loss := objectives.InBatchContrast(image, text, scorer{cfg: cfg, on: s}.score(cfg.PairTerms(), false), positives).Loss
	tg.parts = []namedNode{{name: "itc_in_batch", node: loss}}
	tg.loss = arith.WeightedSum([]float32{float32(cfg.Objective.ITC.InBatchWeight)}, loss)

	if err := tg.compile(b, frozenTemperature(cfg), 0, exec.Config{Engine: h.engine, CheckNaN: cfg.Compute.CheckNaN}); err != nil {
		return err
	}
	tg.own = iota32(0, tg.batch, 1)
	if err := tg.machine.SetInput(own, tg.own); err != nil {
		return err
	}
	return tg.machine.SetInput(key, tg.key[:])
}

// Forward runs one training step up to the gradients, which are in Params.Grads. step
// counts the steps and decides the dropout masks. The result is reused by the next
// step.
func (h *Heads) Forward(f Features, step int) (*Result, error) {
	tg := &h.train
	for _, in := range []struct {
		name string
		node *gorgonia.Node
		data []float32
		want int
	}{
		{"image features", tg.image, f.Image, tg.batch * h.image.in},
		{"text features", tg.text, f.Text, tg.batch * h.text.in},
	} {
		if len(in.data) != in.want {
			return nil, batchError(in.name, len(in.data), in.want)
		}
		if err := tg.machine.SetInput(in.node, in.data); err != nil {
			return nil, err
		}
	}
	if tg.ids != nil {
		if len(f.IDs) != tg.batch {
			return nil, batchError("image ids", len(f.IDs), tg.batch)
		}
		if err := tg.machine.SetInput(tg.ids, f.IDs); err != nil {
			return nil, err
		}
	}
	k := rng.New(h.cfg.Run.Seed, rng.Dropout, uint64(step)).Uint64()
	tg.key[0], tg.key[1] = int32(uint32(k)), int32(uint32(k>>32))
	if err := tg.run(); err != nil {
		return nil, err
	}
	return tg.read()
}

// Params returns the parameters.
func (h *Heads) Params() *Params { return h.params }

// Machine returns the compiled training step, for profiles.
func (h *Heads) Machine() *compute.Machine { return h.train.machine }

// Learnable says whether training changes a parameter.
func (h *Heads) Learnable(name string) bool { return h.train.learnable[name] }

// Temperature returns the contrast's temperature.
func (h *Heads) Temperature() float64 { return temperature(h.params) }

// ClampTemperature keeps the temperature in its range, as after every update.
func (h *Heads) ClampTemperature() { clampTemperature(h.params, h.cfg) }

// Dim returns C, the channels of the shared space.
func (h *Heads) Dim() int { return h.cfg.Model.Head.Dim }
