package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/ops/similarity"
	"gorgonia.org/gorgonia"
)

// Blocks say where a score is explained, counted from 0: at the tokens that the attention of a block
// of the image tower and of a layer of the text tower reads, of recurrent units what a layer reads, and at
// the attention to the image of a fusion layer. A tower with a pool other than class or end has one more,
// the tokens that it pools, as a tower whose tokens an interaction compares has with those.
type Blocks struct{ Image, Text, Fusion int }

// DefaultBlocks are the last of each tower, and of the fusion layers the one in the middle, the third
// of six: the reference's for its own Grad-CAM.
func (p *Pairs) DefaultBlocks() Blocks {
	n := p.blocks()
	return Blocks{n.Image - 1, n.Text - 1, (n.Fusion - 1) / 2}
}

// blocks are how many there are of each.
func (p *Pairs) blocks() Blocks {
	d := &p.design
	n := Blocks{Image: p.places(&d.image), Text: p.places(&d.text)}
	if f := d.fusion; f != nil {
		n.Fusion = f.CrossLayers()
	}
	return n
}

// places are the layers of the tower of a side, and the tokens behind them where a pool or an interaction
// reads them.
func (p *Pairs) places(s *side) int {
	n := p.layers(s)
	pooled := p.design.interaction != nil
	switch t := s.tower.(type) {
	case encoders.ImageTower:
		pooled = pooled || t.Pool == encoders.PoolMean || t.Pool == encoders.PoolAttention
	case encoders.TextTower:
		pooled = pooled || t.Pool == encoders.PoolMean || t.Pool == encoders.PoolMax || t.Pool == encoders.PoolGPO || t.Pool == encoders.PoolESA
	case encoders.RegionTower, encoders.ResNetTower:
		pooled = true
	}
	if pooled {
		n++
	}
	return n
}

// tap shows see the tokens of the tower of a side at a block, of sequences of t.
func (p *Pairs) tap(s *side, block int, see func(tokens *gorgonia.Node, t int)) encoders.Tap {
	tap := encoders.Tap{Tokens: func(i int, tokens *gorgonia.Node, t int) {
		if i == block {
			see(tokens, t)
		}
	}}
	if block == p.layers(s) {
		tap.Pooled = see
	}
	return tap
}

// layers is how many blocks or layers the tower of a side has.
func (p *Pairs) layers(s *side) int {
	switch t := s.tower.(type) {
	case encoders.TextTower:
		return p.cfg.Model.Text.Layers
	case encoders.RegionTower:
		return t.Reasons()
	case encoders.ResNetTower:
		return 0 // the places of the last layer alone
	}
	return p.cfg.Model.Image.Depth
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

// explaining is a compiled computation of a score with gradients to inner nodes.
type explaining struct {
	machine     *exec.Machine
	inputs      *feed.Inputs
	score       *gorgonia.Node
	channels    []float32     // (C) of a group of channels: 1 where they count
	image, text tapped        // of the pair score
	compared    [2]*comparing // of an interaction: image, text
	cross       tapped        // of the match: the gathered values
	q, kv       *gorgonia.Node
	ask         gorgonia.Nodes
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

// Explain returns the pair score of the one pair in b (Encoder.Columns of both sides; of a system of
// two views, batch.Images and batch.Views) by eval.score, with its gradients. It is before any
// temperature. It ends early with the error of ctx.
func (p *Pairs) Explain(ctx context.Context, b *batch.Batch, at Blocks) (*Explained, error) {
	return p.explain(ctx, b, explainKey{"pair", at}, nil)
}

// ExplainGroup is Explain for group k of the m groups of channels of the space: the product of
// both features within it. With a class token for each group it is the score of class token k
// (clip-mtob, section 4.5).
func (p *Pairs) ExplainGroup(ctx context.Context, b *batch.Batch, at Blocks, k int) (*Explained, error) {
	n := p.design.space.SphereDim()
	if m := p.design.space.Groups(); k < 0 || k >= m {
		return nil, fmt.Errorf("model: there is no class token or sphere %d: model.head.topology has %d, from 0 on", k, m)
	}
	return p.explain(ctx, b, explainKey{"group", at}, func(channels []float32) {
		clear(channels)
		for i := k * n; i < (k+1)*n; i++ {
			channels[i] = 1
		}
	})
}

// ExplainMatch returns the logit of the match head for the one pair in b, with the attention to the
// image in fusion layer at.Fusion.
func (p *Pairs) ExplainMatch(ctx context.Context, b *batch.Batch, at Blocks) (*Explained, error) {
	if !p.HasMatching() {
		return nil, errors.New("model: there is no match head to explain")
	}
	return p.explain(ctx, b, explainKey{"match", at}, nil)
}

func (p *Pairs) explain(ctx context.Context, b *batch.Batch, key explainKey, channels func([]float32)) (*Explained, error) {
	if b.Rows() != 1 {
		return nil, fmt.Errorf("model: a pair is explained by itself: want a batch of one row (got %d)", b.Rows())
	}
	x, err := p.explaining(key)
	if err != nil {
		return nil, err
	}
	if channels != nil {
		channels(x.channels)
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	out, err := x.read()
	if err != nil || x.compared[0] == nil {
		return out, err
	}
	c := &Compared{}
	for k, to := range []*Locals{&c.Image, &c.Text} {
		if *to, err = x.compared[k].read(x); err != nil {
			return nil, err
		}
	}
	if terms := p.terms(); terms != nil {
		c.Terms, err = terms(c.Image, c.Text)
	}
	out.Compared = c
	return out, err
}

// explaining returns the computation of a key, built when it is first asked for.
func (p *Pairs) explaining(key explainKey) (*explaining, error) {
	if x := p.explainings[key]; x != nil {
		return x, nil
	}
	if err := p.CheckBlocks(key.at); err != nil {
		return nil, err
	}
	x, err := p.buildExplaining(key)
	if err != nil {
		return nil, err
	}
	if p.explainings == nil {
		p.explainings = map[explainKey]*explaining{}
	}
	p.explainings[key] = x
	return x, nil
}

// Explains returns an error where the system has no scores that patches or words make up.
func (p *Pairs) Explains() error {
	for _, x := range []side{p.design.image, p.design.text} {
		switch x.tower.(type) {
		case encoders.ImageTower, encoders.ResNetTower, encoders.RegionTower, encoders.TextTower:
		default:
			return fmt.Errorf("model: model.system %q has a tower without patches or words (%s): its scores cannot be explained by them", p.cfg.Model.System, x.name)
		}
	}
	return nil
}

// CheckBlocks refuses blocks that there are none of.
func (p *Pairs) CheckBlocks(at Blocks) error {
	if err := p.Explains(); err != nil {
		return err
	}
	usual := p.DefaultBlocks()
	for _, x := range []struct {
		of           string
		at, n, usual int
		exists       bool
	}{
		{"block of the image tower", at.Image, p.blocks().Image, usual.Image, true},
		{"layer of the text tower", at.Text, p.blocks().Text, usual.Text, !p.design.views},
		{"fusion layer", at.Fusion, p.blocks().Fusion, usual.Fusion, p.design.fusion != nil},
	} {
		if x.exists && (x.at < 0 || x.at >= x.n) || !x.exists && x.at != x.usual {
			return fmt.Errorf("model: there is no %s %d: the model has %d, from 0 on", x.of, x.at, x.n)
		}
	}
	return nil
}

// buildExplaining compiles a computation.
func (p *Pairs) buildExplaining(key explainKey) (x *explaining, err error) {
	defer op.Catch(&err)
	n := newNet(p.params)
	x = &explaining{inputs: n.inputs}
	on := encoders.NewScope(n.params).As(encoders.Traits{Twin: p.design.teacher})
	switch {
	case key.kind == "match":
		x.match(p, n, on, key.at)
	case p.design.interaction != nil:
		x.interaction(p, n, on, key.at)
	default:
		x.pair(p, n, on, key)
	}
	if err := x.differentiate(); err != nil {
		return nil, err
	}
	x.machine, err = n.compileEval(exec.Config{Engine: p.engine}, x.ask...)
	return x, err
}

// pair builds the score of features.
func (x *explaining) pair(p *Pairs, n *net, on encoders.Scope, key explainKey) {
	d := &p.design
	features := func(e *Encoder, block int, to *tapped) *gorgonia.Node {
		s := e.side
		scope := e.scope(on.In(s.name)).Tapped(p.tap(s, block, func(tokens *gorgonia.Node, t int) {
			*to = tapped{node: tokens, lead: t - parts(s.tower)}
		}))
		q := s.tower.Encode(&encoders.Context{}, scope, n.towerInputs(s.tower, 1, s.column), encoders.Want{Classes: true})
		return s.head.Project(&encoders.Context{}, on.In(s.proj), q.Classes) // (1, C)
	}
	at := key.at
	if d.views {
		at.Text = at.Image
	}
	f, g := features(p.image, at.Image, &x.image), features(p.text, at.Text, &x.text)
	var s *gorgonia.Node // (1, 1)
	if key.kind == "group" {
		x.channels = make([]float32, d.space.Dim)
		s = similarity.Similarity(nn.ScaleColumns(f, n.inputs.SharedFloats("channels", x.channels, len(x.channels))), g, nil, nil)
	} else {
		s = p.hostScore(encoders.NewScope(n.params)).Pairs(f, g)
	}
	x.score = arith.Sum(s)
}

// interaction builds the score of an interaction.
func (x *explaining) interaction(p *Pairs, n *net, on encoders.Scope, at Blocks) {
	image := x.compare(p, n, on, p.image, at.Image, &x.image)
	text := x.compare(p, n, on, p.text, at.Text, &x.text)
	x.compared = [2]*comparing{image, text}
	x.score = arith.Sum(p.design.interaction.Scores(&encoders.Context{}, encoders.NewScope(n.params), image.local, text.local)) // (1, 1)
}

// hostScore is the score of PairScore in a graph, without a temperature.
func (p *Pairs) hostScore(on encoders.Scope) objectives.Score {
	if p.design.views {
		return objectives.Score{Space: p.design.space, Terms: []objectives.Term{{Kind: scoring.Cosine, Weight: 1}}}
	}
	score, err := p.PairScore()
	if err != nil {
		panic(&op.BuildError{Op: "score", Err: err})
	}
	s := objectives.Score{Space: score.Space}
	for _, t := range score.Host().Terms {
		term := objectives.Term{Kind: t.Kind, Weight: t.Weight}
		if t.Metric != nil && t.Metric.Form != "cosine" {
			term = newScores(p.cfg, score.Space, on, on).Bare(objectives.Terms{{Kind: t.Kind, Weight: float64(t.Weight)}}, false).Terms[0]
		}
		s.Terms = append(s.Terms, term)
	}
	return s
}

// match builds the logit of the match head.
func (x *explaining) match(p *Pairs, n *net, on encoders.Scope, at Blocks) {
	d := &p.design
	image := d.image.tower.Encode(&encoders.Context{}, p.image.scope(on.In(d.image.name)), n.towerInputs(d.image.tower, 1, nil), encoders.Want{Tokens: true, Classes: true})
	text := d.text.tower.Encode(&encoders.Context{}, p.text.scope(on.In(d.text.name)), n.towerInputs(d.text.tower, 1, nil), encoders.Want{Tokens: true, Classes: true})
	tap := encoders.Tap{Cross: func(i int, q, kv, gathered *gorgonia.Node) {
		if i == at.Fusion {
			x.q, x.kv, x.cross = q, kv, tapped{node: gathered}
		}
	}}
	fused := d.fusion.Fusion(&encoders.Context{}, tuned(p.cfg.Model, on.In(d.text.name), &encoders.Context{}).Tapped(tap), encoders.FusionArgs{
		Texts: text.Tokens, Lengths: text.Lengths, Images: image.Tokens, TextLen: text.Len, ImageLen: image.Len,
	}) // (L, D)
	logits := objectives.MatchLogits(encoders.NewScope(n.params), layout.StridedRows(fused, 0, text.Len, 1)) // (1, 2)
	x.score = arith.Sum(layout.StridedRows(layout.Reshape(logits, 2, 1), 1, 1, 1))
	x.sizes = Cross{Heads: d.fusion.Heads, L: text.Len, T: image.Len, P: parts(d.image.tower), D: d.fusion.Width}
}

// parts is the number of patches or regions of an image, or of places of a text.
func parts(t encoders.Tower) int {
	switch v := t.(type) {
	case encoders.ImageTower:
		return v.Patches()
	case encoders.ResNetTower:
		return v.Places()
	}
	n, _ := t.Shape()
	return n
}

// differentiate adds the gradients of the score to the inner nodes, and notes what to compute.
func (x *explaining) differentiate() error {
	x.ask = append(x.ask, x.score)
	var wrt gorgonia.Nodes
	var to []*tapped
	for _, t := range []*tapped{&x.image, &x.text, &x.cross} {
		if t.node != nil {
			wrt, to = append(wrt, t.node), append(to, t)
		}
	}
	// gorgonia.Grad takes inputs alone; what it calls takes inner nodes too.
	one := x.score.Graph().AddNode(gorgonia.NewConstant(float32(1)))
	grads, err := gorgonia.Backpropagate(gorgonia.Nodes{x.score}, gorgonia.Nodes{one}, wrt)
	if err != nil {
		return fmt.Errorf("model: differentiating the score: %w", err)
	}
	for i, t := range to {
		t.grad = grads[i]
		x.ask = append(x.ask, t.node, t.grad)
	}
	if x.q != nil {
		x.ask = append(x.ask, x.q, x.kv)
	}
	return nil
}

// read returns the values after a run.
func (x *explaining) read() (*Explained, error) {
	var errs []error
	value := func(n *gorgonia.Node) []float32 {
		a, err := x.machine.Value(n)
		errs = append(errs, err)
		return a.F32
	}
	states := func(t tapped) *States {
		if t.node == nil {
			return nil
		}
		shape := t.node.Shape()
		n, d := shape[0]-t.lead, shape[1]
		values, grads := value(t.node), value(t.grad)
		if errors.Join(errs...) != nil {
			return nil
		}
		return &States{N: n, D: d, Values: values[t.lead*d:], Grads: grads[t.lead*d:]}
	}
	score, err := x.machine.Scalar(x.score)
	errs = append(errs, err)
	out := &Explained{Score: float64(score), Image: states(x.image), Text: states(x.text)}
	if x.q != nil {
		c := x.sizes
		c.Queries, c.KeyValues, c.Grads = value(x.q), value(x.kv), value(x.cross.grad)
		out.Cross = &c
	}
	return out, errors.Join(errs...)
}
