package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Explainer says what scores of pairs rest on: by gradients at inner nodes, by terms of interactions, and by heat maps.
type Explainer struct {
	m     *Model
	pairs program[explainKey, *explanation]
	maps  program[heatKey, *heatMaps]
}

func newExplainer(m *Model) *Explainer {
	e := &Explainer{m: m}
	e.pairs = program[explainKey, *explanation]{m: m, build: e.build}
	e.maps = program[heatKey, *heatMaps]{m: m, build: e.buildMaps}
	m.programs = append(m.programs, &e.pairs, &e.maps)
	return e
}

// Blocks say where a score is explained, counted from 0: at the tokens that the attention of a block
// of the image tower and of a layer of the text tower reads, of recurrent units what a layer reads, and at
// the attention to the image of a fusion layer. A tower with a pool other than class or end has one more,
// the tokens that it pools, as a tower whose tokens an interaction compares has with those.
type Blocks struct{ Image, Text, Fusion int }

// DefaultBlocks are the last of each tower, and of the fusion layers the one in the middle, the third
// of six: the reference's for its own Grad-CAM.
func (e *Explainer) DefaultBlocks() Blocks {
	n := e.blocks()
	return Blocks{n.Image - 1, n.Text - 1, (n.Fusion - 1) / 2}
}

// blocks are how many there are of each.
func (e *Explainer) blocks() Blocks {
	d := &e.m.design
	n := Blocks{Image: e.places(&d.image), Text: e.places(&d.text)}
	if f := d.fusion; f != nil {
		n.Fusion = f.CrossLayers()
	}
	return n
}

// places are the layers of the tower of a side, and the tokens behind them where a pool or an interaction
// reads them.
func (e *Explainer) places(s *side) int {
	n := e.layers(s)
	pooled := e.m.design.interaction != nil
	switch t := s.tower.(type) {
	case encoders.ImageTower:
		pooled = pooled || t.Pool == encoders.PoolMean || t.Pool == encoders.PoolAttention
	case encoders.TextTower:
		pooled = pooled || t.Pool == encoders.PoolMean || t.Pool == encoders.PoolWeighted || t.Pool == encoders.PoolMax || t.Pool == encoders.PoolGPO ||
			t.Pool == encoders.PoolESA
	case encoders.RegionTower, encoders.ResNetTower, encoders.ConvNetTower:
		pooled = true
	}
	if pooled {
		n++
	}
	return n
}

// tap shows see the tokens of the tower of a side at a block, of sequences of t.
func (e *Explainer) tap(s *side, block int, see func(tokens *gorgonia.Node, t int)) encoders.Tap {
	tap := encoders.Tap{Tokens: func(i int, tokens *gorgonia.Node, t int) {
		if i == block {
			see(tokens, t)
		}
	}}
	if block == e.layers(s) {
		tap.Pooled = see
	}
	return tap
}

// layers is how many blocks or layers the tower of a side has.
func (e *Explainer) layers(s *side) int {
	switch t := s.tower.(type) {
	case encoders.TextTower:
		return e.m.cfg.Model.Text.Layers
	case encoders.RegionTower:
		return t.Reasons()
	case encoders.ResNetTower, encoders.ConvNetTower:
		return 0 // the places of the last layer alone
	}
	return e.m.cfg.Model.Image.Depth
}

// Explained is the score of one pair with what Grad-CAM is made of. Its memory is overwritten by the
// next one of the same kind.
type Explained struct {
	Score float64
	// Image and Text are the patches or regions and the places of the text at their blocks, of systems of
	// two views the patches of both images; nil of a match.
	Image, Text *States
	Cross       *Cross    // of a match
	Compared    *Compared // of an interaction
}

// States are N tokens of D channels, and the gradient of the score to them.
type States struct {
	N, D          int
	Values, Grads []float32 // (N, D)
}

// Cross is the attention of L places of a text to T tokens of an image, the last P of which are its
// patches, before the softmax, and the gradient of the score to the values that the heads gather.
type Cross struct {
	Heads, L, T, P, D int
	Queries           []float32 // (L, D), the heads side by side
	KeyValues         []float32 // (T, 2D), rows [k | v]
	Grads             []float32 // (L, D)
}

// explanation is a compiled computation of a score with gradients to inner nodes.
type explanation struct {
	computation
	score       *gorgonia.Node
	channels    []float32          // (C) of a group of channels: 1 where they count
	image, text tapped             // of the pair score
	compared    [2]*comparedTokens // of an interaction: image, text
	cross       tapped             // of the match: the gathered values
	q, kv       *gorgonia.Node
	sizes       Cross
}

// tapped is an inner node of one row with its gradient; the rows after the first lead ones count.
type tapped struct {
	node, grad *gorgonia.Node
	lead       int
}

// explainKey names a computation.
type explainKey struct {
	kind string
	at   Blocks
}

// Pair returns the pair score of the one pair in b (Encoder.Columns of both sides; of a system of
// two views, batch.Images and batch.Views) by eval.score, with its gradients. It is before any
// temperature. It ends early with the error of ctx.
func (e *Explainer) Pair(ctx context.Context, b *batch.Batch, at Blocks) (*Explained, error) {
	return e.explain(ctx, b, explainKey{"pair", at}, nil)
}

// Group is Pair for group k of the m groups of channels of the space: the product of
// both features within it. With a class token for each group it is the score of class token k
// (clip-mtob, section 4.5).
func (e *Explainer) Group(ctx context.Context, b *batch.Batch, at Blocks, k int) (*Explained, error) {
	n := e.m.design.space.SphereDim()
	if m := e.m.design.space.Groups(); k < 0 || k >= m {
		return nil, fmt.Errorf("model: there is no class token or sphere %d: model.head.topology has %d, from 0 on", k,
			m)
	}
	return e.explain(ctx, b, explainKey{"group", at}, func(channels []float32) {
		clear(channels)
		for i := k * n; i < (k+1)*n; i++ {
			channels[i] = 1
		}
	})
}

// Match returns the logit of the match head for the one pair in b, with the attention to the
// image in fusion layer at.Fusion.
func (e *Explainer) Match(ctx context.Context, b *batch.Batch, at Blocks) (*Explained, error) {
	if e.m.Matcher() == nil {
		return nil, errors.New("model: there is no match head to explain")
	}
	return e.explain(ctx, b, explainKey{"match", at}, nil)
}

func (e *Explainer) explain(ctx context.Context, b *batch.Batch, key explainKey,
	set func(channels []float32)) (*Explained, error) {
	if b.Rows() != 1 {
		return nil, fmt.Errorf("model: a pair is explained by itself: want a batch of one row (got %d)", b.Rows())
	}
	if err := e.CheckBlocks(key.at); err != nil {
		return nil, err
	}
	x, err := e.pairs.get(key)
	if err != nil {
		return nil, err
	}
	if set != nil {
		set(x.channels)
	}
	if err := x.run(ctx, b); err != nil {
		return nil, err
	}
	read := &outputs{machine: x.machine}
	out := x.read(read)
	if x.compared[0] != nil {
		out.Compared = &Compared{Image: x.compared[0].read(read), Text: x.compared[1].read(read)}
	}
	if terms := e.terms(); out.Compared != nil && terms != nil && read.err == nil {
		out.Compared.Terms, err = terms(out.Compared.Image, out.Compared.Text)
	}
	return out, errors.Join(read.err, err)
}

// Check returns an error where the system has no scores that patches or words make up.
func (e *Explainer) Check() error {
	for _, x := range []side{e.m.design.image, e.m.design.text} {
		switch x.tower.(type) {
		case encoders.ImageTower, encoders.ResNetTower, encoders.ConvNetTower, encoders.RegionTower,
			encoders.TextTower:
		default:
			return fmt.Errorf("model: model.system %q has a tower without patches or words (%s): its scores cannot be explained by them", e.m.cfg.Model.System, x.name)
		}
	}
	return nil
}

// CheckBlocks refuses blocks that there are none of.
func (e *Explainer) CheckBlocks(at Blocks) error {
	if err := e.Check(); err != nil {
		return err
	}
	usual := e.DefaultBlocks()
	for _, x := range []struct {
		of           string
		at, n, usual int
		exists       bool
	}{
		{"block of the image tower", at.Image, e.blocks().Image, usual.Image, true},
		{"layer of the text tower", at.Text, e.blocks().Text, usual.Text, !e.m.design.views},
		{"fusion layer", at.Fusion, e.blocks().Fusion, usual.Fusion, e.m.design.fusion != nil},
	} {
		if x.exists && (x.at < 0 || x.at >= x.n) || !x.exists && x.at != x.usual {
			return fmt.Errorf("model: there is no %s %d: the model has %d, from 0 on", x.of, x.at, x.n)
		}
	}
	return nil
}

// build adds a score to a computation, with the inner nodes that explain it.
func (e *Explainer) build(key explainKey, n *net) (*explanation, gorgonia.Nodes, error) {
	x := &explanation{}
	var outputs gorgonia.Nodes
	switch {
	case key.kind == "match":
		x.match(e, n, key.at)
	case e.m.design.interaction != nil:
		outputs = x.interaction(e, n, key.at)
	default:
		x.pair(e, n, key)
	}
	outputs = append(outputs, x.score)
	err := differentiate(x.score, []*tapped{&x.image, &x.text, &x.cross})
	for _, t := range []tapped{x.image, x.text, x.cross} {
		outputs = append(outputs, t.node, t.grad)
	}
	return x, present(append(outputs, x.q, x.kv)...), err
}

// pair builds the score of features.
func (x *explanation) pair(e *Explainer, n *net, key explainKey) {
	features := func(side *Encoder, block int, to *tapped) *gorgonia.Node {
		tap := e.tap(side.side, block, func(tokens *gorgonia.Node, t int) {
			*to = tapped{node: tokens, lead: t - parts(side.side.tower)}
		})
		return side.project(n, side.encode(n, 1, tap, encoders.Want{Classes: true}).Classes) // (1, C)
	}
	at := key.at
	if e.m.design.views {
		at.Text = at.Image
	}
	f, g := features(e.m.image, at.Image, &x.image), features(e.m.text, at.Text, &x.text)
	if key.kind == "group" {
		x.channels = make([]float32, e.m.design.space.Dim)
		f = nn.ScaleColumns(f, n.inputs.SharedFloats("channels", x.channels, len(x.channels)))
		x.score = arith.Sum(similarity.Similarity(f, g, nil, nil)) // (1, 1)
	} else {
		x.score = arith.Sum(e.score(n.root()).Pairs(f, g)) // (1, 1)
	}
}

// interaction builds the score of an interaction, and returns the nodes of the tokens that are compared.
func (x *explanation) interaction(e *Explainer, n *net, at Blocks) gorgonia.Nodes {
	image, text := e.compare(n, e.m.image, at.Image, &x.image), e.compare(n, e.m.text, at.Text, &x.text)
	x.compared = [2]*comparedTokens{image, text}
	x.score = arith.Sum(e.m.design.interaction.Scores(&encoders.Context{}, n.root(), image.local, text.local)) // (1, 1)
	return append(image.nodes(), text.nodes()...)
}

// match builds the logit of the match head.
func (x *explanation) match(e *Explainer, n *net, at Blocks) {
	tap := encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if i == at.Fusion {
			x.q, x.kv, x.cross = q, kv, tapped{node: gathered}
		}
	}}
	logits, image, text := e.m.matchLogits(n, 1, tap) // (1, 2)
	x.score = arith.Sum(layout.StridedRows(layout.Reshape(logits, 2, 1), 1, 1, 1))
	d := &e.m.design
	x.sizes = Cross{Heads: d.fusion.Heads, L: text.Len, T: image.Len, P: parts(d.image.tower), D: d.fusion.Width}
}

// score is the score of PairScore in a graph, without a temperature.
func (e *Explainer) score(on encoders.Scope) objectives.Score {
	if e.m.design.views {
		return objectives.Score{Space: e.m.design.space, Terms: []objectives.Term{{Kind: scoring.Cosine, Weight: 1}}}
	}
	score, err := e.m.PairScore()
	if err != nil {
		panic(&op.BuildError{Op: "score", Err: err})
	}
	s := objectives.Score{Space: score.Space}
	for _, t := range score.Host().Terms {
		term := objectives.Term{Kind: t.Kind, Weight: t.Weight}
		if t.Metric != nil && t.Metric.Form != "cosine" {
			learned := objectives.Terms{{Kind: t.Kind, Weight: float64(t.Weight)}}
			term = objectives.NewScores(e.m.cfg.View(), score.Space, on, on).Bare(learned, false).Terms[0]
		}
		s.Terms = append(s.Terms, term)
	}
	return s
}

// parts is the number of patches or regions of an image, or of places of a text.
func parts(t encoders.Tower) int {
	switch v := t.(type) {
	case encoders.ImageTower:
		return v.Patches()
	case encoders.ResNetTower:
		return v.Places()
	case encoders.ConvNetTower:
		return v.Places()
	}
	n, _ := t.Shape()
	return n
}

// differentiate adds the gradients of a score to inner nodes.
func differentiate(score *gorgonia.Node, nodes []*tapped) error {
	var wrt gorgonia.Nodes
	var to []*tapped
	for _, t := range nodes {
		if t.node != nil {
			wrt, to = append(wrt, t.node), append(to, t)
		}
	}
	// gorgonia.Grad takes inputs alone; what it calls takes inner nodes too.
	one := score.Graph().AddNode(gorgonia.NewConstant(float32(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{score}, gorgonia.Nodes{one}, wrt)
	if err != nil {
		return fmt.Errorf("model: differentiating the score: %w", err)
	}
	for i, t := range to {
		t.grad = grads[i]
	}
	return nil
}

// read returns the values after a run.
func (x *explanation) read(o *outputs) *Explained {
	states := func(t tapped) *States {
		if t.node == nil {
			return nil
		}
		shape := t.node.Shape()
		n, d := shape[0]-t.lead, shape[1]
		values, grads := o.floats(t.node), o.floats(t.grad)
		if o.err != nil {
			return nil
		}
		return &States{N: n, D: d, Values: values[t.lead*d:], Grads: grads[t.lead*d:]}
	}
	out := &Explained{Score: o.scalar(x.score), Image: states(x.image), Text: states(x.text)}
	if x.q != nil {
		c := x.sizes
		c.Queries, c.KeyValues, c.Grads = o.floats(x.q), o.floats(x.kv), o.floats(x.cross.grad)
		out.Cross = &c
	}
	return out
}
