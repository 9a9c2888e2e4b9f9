package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
)

// keys are the features of an update's micro-batches, which enter the queue with the
// update: one that is not made leaves the queue as it was.
type keys struct {
	Keys
	ids   []int32
	micro int
}

// Columns are the columns of a batch that a training step reads.
func (p *Pairs) Columns() []batch.Column {
	return p.step.columns
}

// Before prepares what a step reads besides parameters and batch: it rebuilds the graphs
// over the queue where they are due, and has the losses start. update is the number of
// updates made before.
func (p *Pairs) Before(update int) error {
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Starter); ok {
			x.Start(update)
		}
	}
	if p.graphs == nil || update < p.cfg.Queue.StartSteps {
		return nil
	}
	return p.graphs.before(update)
}

// Undo takes back what Before did to the parameters, so that Before can be called for the
// same update again. Graphs that Before rebuilt stay: it does not rebuild them twice.
func (p *Pairs) Undo() {
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Undoer); ok {
			x.Undo()
		}
	}
}

// Step computes losses and gradients of a micro-batch, the gradients in Params.Grads. It
// changes no state: what the batch brings enters the queue in After. The result is reused
// by the next step. It ends early with the error of ctx.
func (p *Pairs) Step(ctx context.Context, s *feed.Step) (*Result, error) {
	if p.step == nil {
		return nil, errors.New("model: this model was opened for inference: build it with New to train it")
	}
	if p.o.Connector == nil && p.cfg.Objective.MAFA.Connector != "" {
		return nil, fmt.Errorf("model: %s: this model was built without its connector: give it in Options to train it", ConnectorKey)
	}
	if p.tutor == nil && p.cfg.Objective.DistillScores.Teacher != "" {
		return nil, fmt.Errorf("model: %s: this model was built without its teacher: give it in Options.Tutor to train it", TutorKey)
	}
	if p.cache != nil {
		return nil, errors.New(`model: with train.accumulate = "features" a step is Encode of each micro-batch, Compare, and Backward of each`)
	}
	if err := p.step.inputs.Fill(p.step.machine, s); err != nil {
		return nil, err
	}
	return p.run(ctx, s)
}

// run is Step with inputs that are filled. Where a number is not finite, with compute.check_nan, it makes the exchanges that other
// processes wait for all the same.
func (p *Pairs) run(ctx context.Context, s *feed.Step) (*Result, error) {
	bad := p.step.run(ctx)
	if err := p.stage(); err != nil {
		return nil, cause.Join(bad, err)
	}
	if bad != nil && (p.o.Group.Size() == 1 || !errors.As(bad, new(*exec.NonFiniteError))) {
		return nil, bad
	}
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.GradientFilter); ok {
			x.FilterGradients(s.Update)
		}
	}
	if err := p.sample(s.Micro == 0); err != nil {
		return nil, err
	}
	r, err := p.step.read()
	if err != nil {
		return nil, err
	}
	if p.graphs != nil {
		r.Parts = append(r.Parts, p.graphs.values...)
	}
	if err := p.keep(s); err != nil || bad != nil {
		return nil, cause.Join(bad, err)
	}
	return r, nil
}

// Stage names the batch of the step after the next one: on a device its images go there while that computes. Its memory may not
// change until the end of the step that has it, or Unstage. nil: there is none.
func (p *Pairs) Stage(b *batch.Batch) { p.ahead = b }

// Unstage forgets the batch of Stage: it is not that of the next step after all.
func (p *Pairs) Unstage() error {
	p.ahead = nil
	if p.step == nil || p.step.machine == nil {
		return nil
	}
	return p.step.machine.Unstage()
}

// stage begins to copy the batch of Stage.
func (p *Pairs) stage() error {
	b := p.ahead
	if p.ahead = nil; b == nil {
		return nil
	}
	return p.step.inputs.Stage(p.step.machine, b)
}

// filters says whether a loss changes gradients.
func (p *Pairs) filters() bool {
	return slices.ContainsFunc(p.step.losses, func(l objectives.Loss) bool { _, ok := l.(objectives.GradientFilter); return ok })
}

// keep remembers what the batch brings to the queue and to running statistics, and how far it moves the teacher.
func (p *Pairs) keep(s *feed.Step) error {
	if s.Micro == 0 {
		p.keys.Clear()
		p.keys.ids, p.keys.micro = p.keys.ids[:0], 0
		p.step.norms.drop()
		p.step.agreement.kept = p.step.agreement.kept[:0]
	}
	if err := p.step.agreement.keep(p.step.machine, p.o.Group); err != nil {
		return err
	}
	if err := p.step.norms.keep(p.step.machine, p.o.Group); err != nil {
		return err
	}
	if p.queue == nil {
		return nil
	}
	k, err := p.Features()
	if err != nil {
		return err
	}
	return p.keys.add(p.o.Group, k, s.Batch.Ints(batch.IDs))
}

// add appends what a micro-batch brings, on all processes that of all of them.
func (k *keys) add(g parallel.Group, x Keys, ids []int32) (err error) {
	for _, part := range []struct {
		to   *[]float32
		from []float32
	}{{&k.Image, x.Image}, {&k.Text, x.Text}, {&k.ImageBackbone, x.ImageBackbone}, {&k.TextBackbone, x.TextBackbone}} {
		if *part.to, err = g.Gather(*part.to, part.from); err != nil {
			return err
		}
	}
	k.micro++
	k.ids, err = g.GatherInts(k.ids, ids)
	return err
}

// Features returns what the last step's batch brings to the queue. The next step
// overwrites it.
func (p *Pairs) Features() (k Keys, err error) { return p.step.keys.read(p.step.machine) }

// After is called when an update was made: it clamps the temperature, has the losses finish, moves running statistics and the
// boundary of mismatched words, and lets the features
// of all micro-batches into the queue at once, so that each micro-batch saw the same queue.
//
// ALBEF's code clamps the temperature at the start of the next forward pass; doing it at
// the end of the update gives the same numbers and leaves nothing half done when a step
// fails.
func (p *Pairs) After() error {
	p.ClampTemperature()
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Finisher); ok {
			x.Finish()
		}
	}
	p.step.norms.move(p.params, p.o.Group.Size())
	p.moveBoundary()
	if p.queue == nil || p.keys.micro == 0 {
		return nil
	}
	n := p.keys.micro
	rows := len(p.keys.ids) / n
	for k := range n {
		if err := p.queue.Push(p.keys.Part(k, n), p.keys.ids[k*rows:][:rows]); err != nil {
			return err
		}
	}
	p.keys.Clear()
	p.keys.ids, p.keys.micro = p.keys.ids[:0], 0
	return nil
}
