package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/state"
)

// Trainer trains a model: it adds to it the training step, with or without a momentum teacher and a queue of past
// features, and the losses. An update is Before, Step for each micro-batch, the optimiser's change of the parameters,
// and After.
type Trainer struct {
	*Model
	queue  *Queue     // nil without one
	graphs *Graphs    // over the queue; nil unless an objective reads them
	step   *trainStep // the compiled training step; of several, the one that ran last
	lengths
	// cache makes the features that the step reads, of one micro-batch after the other; nil
	// where the step has the towers itself.
	cache   *featureCache
	teacher *scoreTeacher // nil without one
	keys    keys
	ahead   *batch.Batch // of Stage
}

// New builds a model with freshly initialised parameters and compiles its training step.
func New(cfg config.Config, o Options) (*Trainer, error) {
	if o.Group == nil {
		o.Group = parallel.Single{}
	}
	if cfg.Ranks == 0 {
		cfg.Ranks = o.Group.Size()
	}
	if err := checkRanks(cfg, o.Group); err != nil {
		return nil, err
	}
	if o.Engine == nil {
		return nil, errNoEngine
	}
	params := NewParams(cfg.Run.Seed, cfg.Momentum.Enabled)
	params.start = o.Start
	m, err := modelOf(cfg, o, params)
	if err != nil {
		return nil, err
	}
	p := &Trainer{Model: m, lengths: newLengths(cfg)}
	if err := p.checkVocab(); err != nil {
		return nil, err
	}
	if o.Image == nil && o.Text == nil { // whose sizes the configuration says
		f := estimate{m}.footprint()
		f.Batches = 0 // the caller knows
		if d := onDevice(p.engine); d != nil {
			if err := f.fitsOn(d, p.engine.BF16()); err != nil {
				return nil, err
			}
			f.Buffers = 0
		}
		if err := f.fitsByPart(); err != nil {
			return nil, err
		}
	}
	if err := p.newQueue(); err != nil {
		return nil, err
	}
	if o.Teacher != nil {
		if p.teacher, err = newScoreTeacher(o.Teacher, cfg, &p.design, cfg.RankRows()); err != nil {
			return nil, err
		}
	}
	if err := p.buildStep(); err != nil {
		return nil, err
	}
	return p, p.Before(0)
}

// checkRanks tells a batch that the processes of a group cannot share, and a configuration of other ones.
func checkRanks(cfg config.Config, g parallel.Group) error {
	if cfg.Ranks != g.Size() {
		return fmt.Errorf("model: the configuration is of %d processes, the group has %d: leave config.Config.Ranks 0 or set it to the size of the group", cfg.Ranks, g.Size())
	}
	if g.Size() == 1 {
		return nil
	}
	return cfg.CheckRanks()
}

// checkVocab refuses towers of the configuration that read tokens of no vocabulary.
func (p *Trainer) checkVocab() error {
	for _, x := range []struct {
		side *side
		own  encoders.Tower
	}{{&p.design.image, p.o.Image}, {&p.design.text, p.o.Text}} {
		if x.side.tower == nil || x.own != nil || p.o.Vocab > 0 {
			continue
		}
		if _, ok := batch.Find(x.side.tower.Columns(), batch.Tokens); ok {
			return fmt.Errorf("model: Options.Vocab is %d, but the %s tower reads tokens: give the number of tokens of the vocabulary", p.o.Vocab, x.side.name)
		}
	}
	return nil
}

// Close ends work that goes on beside the steps, and gives memory of a device back.
func (p *Trainer) Close() error {
	var errs []error
	if onDevice(p.engine) != nil {
		for _, s := range p.steps {
			errs = append(errs, s.machine.Close())
		}
		if p.room != nil {
			errs = append(errs, p.room.Close())
		}
	}
	errs = append(errs, p.Model.Close())
	if p.queue != nil {
		errs = append(errs, p.queue.held.close())
	}
	if p.teacher != nil {
		errs = append(errs, p.teacher.m.Close())
	}
	if p.graphs != nil {
		errs = append(errs, p.graphs.close())
	}
	return cause.Join(errs...)
}

// Group returns the processes that train the model together.
func (p *Trainer) Group() parallel.Group { return p.o.Group }

// Queue returns the queue of features, or nil.
func (p *Trainer) Queue() *Queue { return p.queue }

// Graphs returns the graphs over the queue, or nil.
func (p *Trainer) Graphs() *Graphs { return p.graphs }

// Learnable says whether training changes a parameter.
func (p *Trainer) Learnable(name string) bool { return p.step.learnable[name] }

// Trained returns the number of values that training changes.
func (p *Trainer) Trained() (n int) {
	for _, q := range p.params.list {
		if p.Learnable(q.Name) {
			n += q.Len()
		}
	}
	return n
}

// Nodes returns the number of nodes that run for a micro-batch, with those of losses over several.
func (p *Trainer) Nodes() int {
	n := p.step.machine.Nodes()
	if p.cache != nil {
		for _, x := range p.cache.passes() {
			n += x.machine.Nodes()
		}
	}
	return n
}

// Machine returns the compiled training step, for profiles; nil in a model for inference. With
// train.accumulate = "features" it is that of the losses.
func (p *Trainer) Machine() *compute.Machine {
	if p.step == nil {
		return nil
	}
	return p.step.machine
}

// Passes returns how the time of the steps since Machine().ResetProfile was spent: the
// forward pass up to the loss, and the backward pass, with what it computes again.
func (p *Trainer) Passes() (forward, backward time.Duration) {
	return p.step.machine.Passes(p.step.loss)
}

// Chance returns the parts of the loss whose value without any knowledge is known, with that
// value, in nats.
func (p *Trainer) Chance() []Part {
	var known []Part
	for _, x := range p.step.parts {
		if x.Chance > 0 {
			known = append(known, Part{Name: x.Name, Value: x.Chance})
		}
	}
	return known
}

// Temperature returns the temperature that scores are divided by, 0 where the model has none.
func (p *Trainer) Temperature() float64 { return temperature(p.params) }

// ClampTemperature keeps the temperature in its range. With
// objective.itc.log_temperature the scale 1/temperature is capped, as CLIP caps it.
func (p *Trainer) ClampTemperature() { clampTemperature(p.params, p.cfg) }

// Part is a named value of a step: a loss part or a measure.
type Part struct {
	Name    string
	Value   float64
	Measure bool // no part of the loss, such as an accuracy
}

// Result is what a training step computed. Gradients are in Params.Grads.
type Result struct {
	Loss  float64
	Parts []Part // reused by the next step
}

// keys are the features of an update's micro-batches, which enter the queue with the
// update: one that is not made leaves the queue as it was.
type keys struct {
	Keys
	ids   []int32
	micro int
}

// Columns are the columns of a batch that a training step reads.
func (p *Trainer) Columns() []batch.Column {
	return p.steps[0].columns
}

// Before prepares what a step reads besides parameters and batch: it rebuilds the graphs
// over the queue where they are due, and has the losses start. update is the number of
// updates made before.
func (p *Trainer) Before(update int) error {
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
func (p *Trainer) Undo() {
	for _, l := range p.step.losses {
		if x, ok := l.(objectives.Undoer); ok {
			x.Undo()
		}
	}
}

// Step computes losses and gradients of a micro-batch, the gradients in Params.Grads. It
// changes no state: what the batch brings enters the queue in After. The result is reused
// by the next step. It ends early with the error of ctx.
func (p *Trainer) Step(ctx context.Context, s *feed.Step) (*Result, error) {
	if p.o.Connector == nil && p.cfg.Objective.MAFA.Connector != "" {
		return nil, fmt.Errorf("model: %s: this model was built without its connector: give it in Options to train it",
			ConnectorKey)
	}
	if p.teacher == nil && p.cfg.Objective.DistillScores.Teacher != "" {
		return nil, fmt.Errorf("model: %s: this model was built without its teacher: give it in Options.Teacher to train it", TeacherKey)
	}
	if p.cache != nil {
		return nil, errors.New(`model: with train.accumulate = "features" a step is Encode of each micro-batch, Compare, and Backward of each`)
	}
	s, err := p.fit(s)
	if err != nil {
		return nil, err
	}
	if err := p.step.inputs.Fill(p.step.machine, s); err != nil {
		return nil, err
	}
	return p.run(ctx, s)
}

// run is Step with inputs that are filled. Where a number is not finite, with compute.check_nan, it makes the exchanges
// that other processes wait for all the same.
func (p *Trainer) run(ctx context.Context, s *feed.Step) (*Result, error) {
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

// Stage names the batch of the step after the next one: on a device its images go there while that computes. Its memory
// may not change until the end of the step that has it, or Unstage. nil: there is none.
func (p *Trainer) Stage(b *batch.Batch) { p.ahead = b }

// Unstage forgets the batch of Stage: it is not that of the next step after all.
func (p *Trainer) Unstage() error {
	p.ahead = nil
	var errs []error
	for _, s := range p.steps {
		errs = append(errs, s.machine.Unstage())
	}
	return cause.Join(errs...)
}

// stage begins to copy the batch of Stage.
func (p *Trainer) stage() error {
	b := p.ahead
	if p.ahead = nil; b == nil {
		return nil
	}
	s := p.stepFor(longest(b))
	return s.inputs.Stage(s.machine, b)
}

// filters says whether a loss changes gradients.
func (p *Trainer) filters() bool {
	return slices.ContainsFunc(p.step.losses, func(l objectives.Loss) bool {
		_, ok := l.(objectives.GradientFilter)
		return ok
	})
}

// keep remembers what the batch brings to the queue and to running statistics, and how far it moves the teacher.
func (p *Trainer) keep(s *feed.Step) error {
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
func (p *Trainer) Features() (k Keys, err error) { return p.step.keys.read(p.step.machine) }

// After is called when an update was made: it clamps the temperature, has the losses finish, moves running statistics
// and the boundary of mismatched words, and lets the features of all micro-batches into the queue at once, so that each
// micro-batch saw the same queue.
//
// ALBEF's code clamps the temperature at the start of the next forward pass; doing it at
// the end of the update gives the same numbers and leaves nothing half done when a step
// fails.
func (p *Trainer) After() error {
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

// Span is the places Lo, Lo+1, ... Hi-1 of the flat buffers of Params.
type Span struct{ Lo, Hi int }

// GradientOrder returns the places of the gradients of all parameters that are trained, one span for each, in the order
// in which Step completes them: those of the last layers first. It is nil where they are complete at the end of Step
// alone, with losses that change gradients and with train.accumulate = "features".
func (p *Trainer) GradientOrder() (order []Span) {
	if p.step == nil || p.cache != nil || p.filters() {
		return nil
	}
	return p.orderOf(p.step)
}

// orderOf is the order in which a step completes gradients.
func (p *Trainer) orderOf(s *trainStep) (order []Span) {
	for _, n := range s.machine.Bound() {
		order = append(order, s.spans[n.ID()])
	}
	return order
}

// OnGradients has Step call f while it runs as soon as the gradients of span k of GradientOrder are
// complete, which then are the caller's. nil ends it.
func (p *Trainer) OnGradients(f func(k int)) {
	for _, s := range p.steps {
		s.machine.OnComplete(f)
	}
}

// State returns what a checkpoint holds of the system besides its parameters: the queue
// and the graphs over it, and which teacher of scores it has.
func (p *Trainer) State() (parts []state.Part) {
	if p.queue != nil {
		parts = append(parts, p.queue)
	}
	if p.graphs != nil {
		parts = append(parts, p.graphs)
	}
	if p.teacher != nil {
		parts = append(parts, p.teacher)
	}
	return parts
}
