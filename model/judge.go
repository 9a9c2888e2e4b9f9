package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/op"
	"gorgonia.org/gorgonia"
)

// judging is the compiled computation of what is said of a number of rows.
type judging struct {
	machine *exec.Machine
	inputs  *feed.Inputs
	outputs *gorgonia.Node // (n, k)
}

// judger builds what a model that was fine-tuned to judge rows says of n of them, (n, k).
type judger interface {
	judged(p *Pairs, net *net, n int) *gorgonia.Node
}

// judger returns that of the configuration, nil where the model judges nothing.
func (p *Pairs) judger() judger {
	switch {
	case p.cfg.Model.JudgesPairs():
		return judgedPairs{newSentencePairs(p.cfg)}
	case p.cfg.Model.Classifies():
		return judgedImages{newClasses(p.cfg, p.o)}
	case p.cfg.Objective.Entailment.Weight > 0:
		return judgedFused{newEntailment(p.cfg).Head}
	case p.cfg.Objective.NLVR.Weight > 0:
		return judgedFused{newNLVR(p.cfg).Head}
	}
	return nil
}

// errJudgesNothing is the error of a model without a classifier of rows.
var errJudgesNothing = errors.New("model: it was not fine-tuned for a task that judges rows, such as entailment: train it with trainer finetune --task")

// JudgeColumns are the columns of a batch that Judge reads, nil where the model judges nothing.
func (p *Pairs) JudgeColumns() []batch.Column {
	j := p.judger()
	if j == nil {
		return nil
	}
	net := newNet(p.params)
	var columns []batch.Column
	build := func() (err error) {
		defer op.Catch(&err)
		j.judged(p, net, 1)
		columns = net.inputs.Columns()
		return nil
	}
	if build() != nil {
		return nil
	}
	return columns
}

// Judge returns what the model says of the n rows of a batch: logits (n, classes), or scores (n, 1) from 0 to 1. The
// next call overwrites them. A computation is kept for every number of rows. It ends early with the error of ctx.
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

// judging returns the computation of n rows, built when it is first asked for.
func (p *Pairs) judging(n int) (x *judging, err error) {
	if x := p.judgings[n]; x != nil {
		return x, nil
	}
	j := p.judger()
	if j == nil {
		return nil, errJudgesNothing
	}
	defer op.Catch(&err)
	net := newNet(p.params)
	x = &judging{inputs: net.inputs, outputs: j.judged(p, net, n)}
	if x.machine, err = net.compileEval(exec.Config{Engine: p.engine}, x.outputs); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if p.judgings == nil {
		p.judgings = map[int]*judging{}
	}
	p.judgings[n] = x
	return x, nil
}
