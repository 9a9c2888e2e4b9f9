package model

import (
	"context"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/op"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
)

// sentencePairs is fine-tuning of a text tower on pairs of sentences: that of simcse without a head of its own, and in training
// with the types of tokens where both sentences are one text. A sentence alone is encoded as before, all of the first type.
func sentencePairs(cfg config.Config, o Options, space space.Space) design {
	t := textTower(cfg, o, space)
	one := side{name: "text", proj: "text_proj", frozen: cfg.Model.Text.Freeze, tower: t, head: encoders.Projection{Space: space, Identity: true}}
	if cfg.JointPairs() {
		t.Segments = true
		one.inTraining = t
	}
	return design{image: one, text: one, views: true}
}

// newSentencePairs is the loss over pairs of sentences.
func newSentencePairs(cfg config.Config) objectives.SentencePairs {
	c, task := cfg.Objective.SentencePairs, cfg.Data.SentencePairs
	l := objectives.SentencePairs{Weight: c.Weight, Joint: cfg.JointPairs(), Head: encoders.PairHead{Classes: task.Classes(), Dropout: c.Dropout}}
	l.Low, l.High = task.Scale()
	return l
}

// judging is the compiled computation of what is said of a number of pairs of sentences.
type judging struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	outputs *gorgonia.Node // (n, k)
}

// JudgeColumns are the columns of a batch that Judge reads.
func (p *Pairs) JudgeColumns() []batch.Column {
	columns := p.design.text.trained().Columns()
	if !p.cfg.JointPairs() {
		columns = append(columns, batch.Column{Name: batch.SecondTokens, Shape: []int{p.cfg.Data.Tokens}, Type: batch.Int32}, batch.Column{Name: batch.SecondLengths, Type: batch.Int32})
	}
	return columns
}

// Judge returns what the model says of the n pairs of sentences of a batch: logits (n, classes), or scores (n, 1) from 0 to 1. The
// next call overwrites them. A computation is kept for every number of pairs. It ends early with the error of ctx.
func (p *Pairs) Judge(ctx context.Context, b *batch.Batch) ([]float32, error) {
	x, err := p.judging(b.Rows())
	if err != nil {
		return nil, err
	}
	if err := x.inputs.Fill(x.machine, &feed.Step{Batch: b}); err != nil {
		return nil, err
	}
	if err := x.machine.Run(ctx); err != nil {
		return nil, err
	}
	a, err := x.machine.Value(x.outputs)
	return a.F32, err
}

// judging returns the computation of n pairs, built when it is first asked for.
func (p *Pairs) judging(n int) (x *judging, err error) {
	if x := p.judgings[n]; x != nil {
		return x, nil
	}
	defer op.Catch(&err)
	net := newNet(p.params)
	t, l := p.design.text.trained().(encoders.TextTower), newSentencePairs(p.cfg)
	root := encoders.NewScope(net.params)
	x = &judging{inputs: net.inputs}
	in := net.towerInputs(t, n, nil)
	var said objectives.Side
	if scope := p.text.scope(root.In(p.text.side.name)); l.Joint {
		said.Sequence = t.Encode(&encoders.Context{}, scope, in, encoders.Want{Classes: true})
	} else {
		said = encodeBehind(net, t, scope, &encoders.Context{}, n, in, objectives.Read{Behind: []batch.Text{batch.PositiveText}})
	}
	x.outputs = l.Outputs(&encoders.Context{}, root, said)
	if x.machine, err = net.compileEval(exec.Config{Engine: p.engine}, x.outputs); err != nil {
		return nil, err
	}
	if p.judgings == nil {
		p.judgings = map[int]*judging{}
	}
	p.judgings[n] = x
	return x, nil
}
