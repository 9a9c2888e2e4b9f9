package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"gorgonia.org/gorgonia"
)

// Classifier is the head of a model that was fine-tuned to classify rows or to score them: images, pairs of sentences,
// or texts with their pictures.
type Classifier struct {
	m      *Model
	loss   objectives.Classifier
	logits program[int, *rowLogits] // by rows
	maps   program[int, *heatMaps]
}

// rowLogits is a compiled classifier.
type rowLogits struct {
	computation
	logits *gorgonia.Node
}

// newClassifier returns that of the configuration of m, nil without one.
func newClassifier(m *Model) *Classifier {
	c := &Classifier{m: m}
	for _, l := range m.cfg.Losses() {
		if x, ok := l.(objectives.Classifier); ok {
			c.loss = x
		}
	}
	if c.loss == nil {
		return nil
	}
	c.logits = program[int, *rowLogits]{m: m, build: func(rows int, n *net) (*rowLogits, gorgonia.Nodes, error) {
		z := c.outputs(n, rows, nil)
		return &rowLogits{logits: z}, gorgonia.Nodes{z}, nil
	}}
	c.maps = program[int, *heatMaps]{m: m, build: c.buildMaps}
	m.programs = append(m.programs, &c.logits, &c.maps)
	return c
}

// Columns are the columns of a batch that Logits reads, nil where the model has no such head after all.
func (c *Classifier) Columns() []batch.Column {
	n := newNet(c.m.params)
	build := func() (err error) {
		defer op.Catch(&err)
		c.outputs(n, 1, nil)
		return nil
	}
	if build() != nil {
		return nil
	}
	return n.inputs.Columns()
}

// Classes returns the names of the classes of a classifier of images, in the order of their numbers; nil of others.
func (c *Classifier) Classes() []string { return c.m.o.Classes }

// Logits returns the logits (n, classes) of the n rows of a batch, or their scores (n, 1) from 0 to 1. The
// next call overwrites them. A computation is kept for every number of rows. It ends early with the error of ctx.
func (c *Classifier) Logits(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := c.logits.get(b.Rows())
	if err != nil {
		return nil, err
	}
	if err := x.run(ctx, b); err != nil {
		return nil, err
	}
	a, err := x.machine.Value(x.logits)
	return a.F32, err
}

// HasHeatMaps says whether HeatMaps has maps: it looks at pictures of patches.
func (c *Classifier) HasHeatMaps() bool {
	return !c.m.cfg.Has(section.SentencePairs) && c.m.hasPatches()
}

// HeatMaps returns what the P patches of each picture add to a class of each of the n rows of b (Columns), as a rule
// the predicted one: (n, pictures, P). S is the logit of the class of a row. With fusion layers the map of a picture is
// that of the attention of the words to it in the layer in the middle, the third of six, as Explainer.HeatMaps has it.
// Of an image tower alone it is
//
//	H_p = max(0, sum_d a_pd dS/da_pd)
//
// over the D channels of the patches a that its last block reads, or that are pooled: the last feature map of a
// residual network, where it is Grad-CAM (explain.Elementwise). A computation is kept for every number of rows: call it
// with few different ones. It ends early with the error of ctx.
func (c *Classifier) HeatMaps(ctx context.Context, b *batch.Batch, classes []int32) ([]float32, error) {
	n := b.Rows()
	if len(classes) != n {
		return nil, fmt.Errorf("model: heat maps of %d rows need a class for each (got %d)", n, len(classes))
	}
	x, err := c.maps.get(n)
	if err != nil {
		return nil, err
	}
	k := len(x.chosen) / n
	clear(x.chosen)
	for i, class := range classes {
		if class < 0 || int(class) >= k {
			return nil, fmt.Errorf("model: there is no class %d: the model tells %d, from 0 on", class, k)
		}
		x.chosen[i*k+int(class)] = 1
	}
	return x.values(ctx, c.m, b)
}

// buildMaps adds the sum of the logits of a class of each row to a computation, with what heat maps are made of.
func (c *Classifier) buildMaps(rows int, n *net) (*heatMaps, gorgonia.Nodes, error) {
	if !c.HasHeatMaps() {
		return nil, nil, fmt.Errorf("model: model.system %q has no pictures of patches to draw heat maps of",
			c.m.cfg.Model.System)
	}
	return newHeatMaps(c.m, rows, func(x *heatMaps) *gorgonia.Node {
		z := c.outputs(n, rows, x) // (n, k)
		k := z.Shape()[1]
		x.chosen = make([]float32, rows*k)
		return arith.Sum(arith.SumProducts(z, n.inputs.SharedFloats("chosen classes", x.chosen, rows, k), 1))
	})
}

// outputs adds the logits (n, k) of rows of a batch to a computation, or their scores (n, 1). With x it says there what
// heat maps of the pictures are made of.
func (c *Classifier) outputs(n *net, rows int, x *heatMaps) *gorgonia.Node {
	s := &objectives.Step{Host: newHost(c.m.cfg, c.m.o), Inputs: n.inputs, Rows: rows, Params: n.root(),
		Student: &encoders.Context{}}
	side := c.sentences
	if _, fused := c.loss.(objectives.Fused); fused {
		side = c.fused
	} else if c.m.cfg.Has(section.Images) {
		side = c.image
	}
	return c.loss.Outputs(s, side(n, rows, x))
}

// sentences are pairs of sentences.
func (c *Classifier) sentences(n *net, rows int, _ *heatMaps) (x objectives.Side) {
	t := c.m.design.text.trained().(encoders.TextTower)
	in, scope, context := n.towerInputs(t, rows, nil), c.m.text.scope(n), &encoders.Context{}
	if c.m.cfg.JointPairs() {
		x.Sequence = t.Encode(context, scope, in, encoders.Want{Classes: true})
		return x
	}
	return encodeBehind(n, t, scope, context, rows, in, objectives.Read{Behind: []batch.Text{batch.PositiveText}})
}

// image is images by their class tokens. Maps are of the tokens that the last block reads, or that are pooled.
func (c *Classifier) image(n *net, rows int, x *heatMaps) objectives.Side {
	var tap encoders.Tap
	if e := c.m.explainer; x != nil {
		tap = e.tap(&c.m.design.image, e.DefaultBlocks().Image,
			func(tokens *gorgonia.Node, t int) { x.tokens.node, x.t = tokens, t })
	}
	return objectives.Side{Sequence: c.m.image.encode(n, rows, tap, encoders.Want{Classes: true})}
}

// fused is texts with their pictures by the first fused token. Maps are of the attention of the words to each picture,
// in the layer in the middle.
func (c *Classifier) fused(n *net, rows int, x *heatMaps) (side objectives.Side) {
	m := c.m
	objectives.Need(m.design.fusion != nil, "task", "this system has no fusion layers")
	e, pictures := m.image, m.cfg.Pictures()
	tower := e.side.tower
	in := n.towerInputs(tower, rows, nil)
	if _, pixels := in[batch.Images]; pixels && pictures > 1 {
		in = n.withSecond(tower, rows, in)
	}
	image := tower.Encode(&encoders.Context{}, e.scope(n), in, encoders.Want{Tokens: true})
	text := m.text.encode(n, rows, encoders.Tap{}, encoders.Want{Tokens: true})
	a := encoders.FusionArgs{Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens,
		At: n.firstTokens(rows, text.Len), TextLen: text.Len, ImageLen: image.Len}
	if pictures > 1 {
		a.Pairs = multimodal.BothPictures(n.inputs, rows)
	}
	var tap encoders.Tap
	if x != nil {
		at := m.explainer.DefaultBlocks().Fusion
		at -= at % pictures // which attends to the first
		tap = x.attention(*m.design.fusion, rows, at, pictures, image.Len)
		x.lengths = text.Lengths
	}
	side.Classes = m.fuse(n, tap, a) // (n, D)
	return side
}
