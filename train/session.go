package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/optim"
	"github.com/geoalign/geoalign/train/schedule"
)

// Session is a training run: the model, its optimiser, its data and the schedules. It is
// the Stepper of the loop.
type Session struct {
	cfg       config.Config
	model     System
	optimizer *optim.AdamW
	loader    *data.Loader
	tokenizer *tokenizer.Tokenizer // nil for a system without texts
	group     parallel.Group       // of the model

	span schedule.Span
	lr   schedule.LR
	sum  []float32 // accumulated gradients; nil with one micro-batch
	// On a device their mirrors stand for sum and for the gradients of a micro-batch; nil on the host.
	sumThere, gradsThere *cuda.Mirror
	rates                Rates
	// compare makes steps over the pairs of all micro-batches, which held are; nil: each for itself.
	compare comparer
	held    []*data.Batch
	parts   []Value
	tower   []Value // memory of StepResult.TowerLR
	feed    feed.Step
	run     runPart    // of the newest checkpoint
	begun   data.Place // before the newest step
	started bool       // the model was told of it
	whole   bool       // it was not made, and has changed nothing that Undo does not take back

	// Of several processes: sums of gradients, and memory of what is told to the others and by all.
	sums      *sums
	told, all []int32
}

var _ Stepper = (*Session)(nil)

// Options are the collaborators of a session besides its configuration. They stay the
// caller's.
type Options struct {
	Engine    *kernel.Engine
	Model     System
	Stream    data.Stream
	Tokenizer *tokenizer.Tokenizer // saved with checkpoints; nil for a system without texts
}

// NewSession wires a session of the processes that the model is trained by. The stream gives the samples of
// all of them, with the columns that the model reads; train.batch_size is the batch of all.
func NewSession(cfg config.Config, o Options) (*Session, error) {
	s := &Session{cfg: cfg, model: o.Model, tokenizer: o.Tokenizer, group: o.Model.Group()}
	if cfg.AccumulatesFeatures() {
		var ok bool
		if s.compare, ok = s.model.(comparer); !ok {
			return nil, fmt.Errorf("train: train.accumulate: the system %T cannot compare the pairs of several micro-batches: set it to \"gradients\"", s.model)
		}
	}
	var err error
	epoch := o.Stream.EpochSamples()
	if n := cfg.Data.OverfitSamples; n > 0 {
		epoch = n
	}
	if s.span, err = schedule.NewSpan(cfg.Train.Length(), epoch, cfg.DropsLast()); err != nil {
		return nil, err
	}
	if err := wholeIdentities(cfg, s.group.Size()); err != nil {
		return nil, err
	}
	if s.lr, err = schedule.NewLR(cfg.Optimizer.LR, cfg.Schedule, s.span); err != nil {
		return nil, err
	}
	s.feed = feed.Step{PerEpoch: s.span.Epoch, Rank: s.group.Rank(), Ranks: s.group.Size()}
	s.rates = NewRates(cfg)
	if s.optimizer, err = NewOptimizerAt(cfg.Optimizer, s.rates, o.Engine, s.model); err != nil {
		return nil, err
	}
	if cfg.Train.AccumulateSteps > 1 {
		s.sum = make([]float32, len(s.model.Params().Grads()))
		if d, _, grads, _ := s.model.Params().Device(); d != nil {
			s.gradsThere = grads
			if s.sumThere, err = d.Mirror(s.sum, grads.Spans(), false); err != nil {
				return nil, fmt.Errorf("train: sum of the gradients of micro-batches: %w", err)
			}
		}
	}
	if s.group.Size() > 1 {
		grads := s.model.Params().Grads()
		total := grads
		_, _, there, _ := s.model.Params().Device()
		if s.sum != nil {
			total, there = s.sum, s.sumThere
		}
		s.sums = newSums(s.group, s.model, grads, total, there, cfg.Parallel.BucketMB<<20/4)
	}
	s.loader, err = data.NewLoader(o.Stream, data.LoaderConfig{
		BatchSize: cfg.Train.BatchSize, Columns: s.model.Columns(),
		Workers: cfg.Data.Workers, Prefetch: cfg.Data.Prefetch, Held: cfg.HeldBatches(),
		MaxBadShare: cfg.Data.MaxBadShare, Overfit: cfg.Data.OverfitSamples, DropLast: cfg.DropsLast(), Group: s.group,
		Lengths: cfg.TokenLengths(), Seed: cfg.Run.Seed,
	})
	return s, err
}

// NewOptimizer returns the optimiser of all parameters of m that training changes, and
// of the momentum encoder of m for StepTwins.
func NewOptimizer(c optim.Settings, engine *kernel.Engine, m Trainable) (*optim.AdamW, error) {
	return NewOptimizerAt(c, Rates{}, engine, m)
}

// NewOptimizerAt is NewOptimizer with a rate for each parameter.
func NewOptimizerAt(c optim.Settings, rates Rates, engine *kernel.Engine, m Trainable) (*optim.AdamW, error) {
	p := m.Params()
	var segs []optim.Segment
	for _, q := range p.List() {
		if q.Locked {
			continue
		}
		decay, err := optim.Decays(c.NoDecay, q.Name, q.Group, cmp.Or(q.Axes, len(q.Shape)))
		if err != nil {
			return nil, err
		}
		segs = append(segs, optim.Segment{Name: q.Name, Offset: p.Offset(q), Len: q.Len(), Decay: decay,
			Rate: rates.Of(q.Name), Pull: optim.Pull(q.Pull), Shape: q.Shape, Frozen: !m.Learnable(q.Name)})
	}
	o, err := optim.New(engine, p.Values(), p.Grads(), segs, c)
	if err != nil {
		return nil, err
	}
	var twins []optim.Twin
	p.MomentumRuns(func(offset int, twin []float32) { twins = append(twins, optim.Twin{Offset: offset, Values: twin}) })
	if err := o.SetTwins(twins); err != nil {
		return nil, err
	}
	if d, values, grads, mirrored := p.Device(); d != nil {
		return o, o.UseCUDA(d, optim.Mirrors{Params: values, Grads: grads, Twins: mirrored})
	}
	return o, nil
}

// Model returns the model in training.
func (s *Session) Model() System { return s.model }

// Span returns the length of the run.
func (s *Session) Span() schedule.Span { return s.span }

// Loader returns the training data.
func (s *Session) Loader() *data.Loader { return s.loader }

// Close ends the loader. The model stays the caller's.
func (s *Session) Close() error {
	err := cause.Join(s.unstage(), s.optimizer.Close(), s.loader.Close())
	if s.sumThere != nil {
		err = cause.Join(err, s.sumThere.Close())
		s.sumThere = nil
	}
	return err
}

// Step implements Stepper: losses and gradients of the micro-batches, the test for
// finite numbers, the update, the twins, what the system does after it.
//
// ALBEF's code moves the twins at the start of the next forward pass; doing it at the end
// of the update gives the same numbers and leaves nothing half done when a step fails.
//
// Of several processes all make the step or none. Its numbers are those of all. It does not end early
// once it has begun.
func (s *Session) Step(ctx context.Context, step int) (StepResult, error) {
	s.tower = s.rates.at(s.tower[:0], s.lr.At(step))
	micro := max(1, s.cfg.Train.AccumulateSteps)
	out := StepResult{LR: s.lr.At(step), TowerLR: s.tower, Parts: s.parts[:0]}
	s.begun, s.started, s.whole = s.loader.Place(), false, true
	if err := s.meet(ctx); err != nil {
		return out, err
	}
	if s.group.Size() > 1 { // the others would wait for this process
		ctx = context.WithoutCancel(ctx)
	}
	s.started, s.whole = true, false
	if m, ok := s.model.(starter); ok {
		if err := m.Before(step); err != nil {
			return out, err
		}
	}
	s.whole = true
	bad, err := s.gradients(ctx, step, micro, &out)
	if err != nil {
		return out, err
	}
	if s.sums != nil {
		if err := s.sums.wait(); err != nil {
			return out, cause.Join(bad, err)
		}
	}
	if err := s.agree(step, bad, &out); err != nil {
		return out, err
	}
	if err := s.summed(); err != nil {
		return out, err
	}
	scale := 1 / float64(s.group.Size())
	if s.compare == nil { // the loss is the mean of those of the micro-batches
		scale /= float64(micro)
	}
	out.GradNorm = s.optimizer.GradNorm(scale)
	if err := s.optimizer.Err(); err != nil {
		return out, err
	}
	if !finite(out.GradNorm) { // the same on every rank
		return out, &NonFiniteError{Step: step, What: fmt.Sprintf("the gradient norm is %v (loss %v)", out.GradNorm,
			out.Loss)}
	}
	m, err := s.momentum(step, &out)
	if err != nil {
		return out, err
	}
	s.parts, s.whole = out.Parts, false
	if s.cfg.Momentum.Enabled {
		s.optimizer.StepTwins(out.LR, scale, out.GradNorm, m)
	} else {
		s.optimizer.Step(out.LR, scale, out.GradNorm)
	}
	if err := s.optimizer.Err(); err != nil {
		return out, err
	}
	if m, ok := s.model.(finisher); ok {
		if err := m.After(); err != nil {
			return out, err
		}
	}
	if m, ok := s.model.(tempered); ok {
		out.Temperature = m.Temperature()
	}
	return out, nil
}

// gradients computes the gradients of all micro-batches. bad is a number that is not finite, where
// there was one: the rest of the data is read all the same, and of several processes, which exchange something in
// each micro-batch, they compute the rest too.
func (s *Session) gradients(ctx context.Context, step, micro int, out *StepResult) (bad, err error) {
	if s.compare != nil {
		return s.compared(ctx, step, micro, out)
	}
	for k := range micro {
		b, err := s.next(ctx, out)
		if err != nil {
			return nil, err
		}
		if s.sums != nil && k == micro-1 {
			s.sums.watch()
		}
		if bad == nil {
			bad = s.micro(ctx, b, step, k, micro, out)
			if bad != nil && s.sums == nil { // the batch that was staged is read and not computed
				if err := s.unstage(); err != nil {
					return nil, cause.Join(bad, err)
				}
			}
		} else if s.sums != nil {
			s.micro(ctx, b, step, k, micro, out)
		}
		s.loader.Recycle(b)
		if fatal(bad) {
			return nil, bad
		}
	}
	return bad, nil
}

// next reads a batch and counts the time that it took.
func (s *Session) next(ctx context.Context, out *StepResult) (*data.Batch, error) {
	begin := time.Now()
	b, err := s.loader.Next(ctx)
	if err == nil {
		out.DataWait += time.Since(begin)
	}
	return b, err
}

// fatal says whether an error is other than that of a number that is not finite.
func fatal(err error) bool {
	var notFinite *NonFiniteError
	return err != nil && !errors.As(err, &notFinite)
}

// Undo implements Stepper. Gradients of micro-batches are dropped: when the step is made
// again, on the same data and random numbers, it computes the same ones.
func (s *Session) Undo() bool {
	if !s.whole || s.unstage() != nil {
		return false
	}
	s.loader.Rewind(s.begun)
	if m, ok := s.model.(undoer); ok && s.started {
		m.Undo()
	}
	return true
}

// stager is a system that takes a batch to a device while it computes another one.
type stager interface {
	Stage(b *batch.Batch)
	Unstage() error
}

var _ stager = (*model.Trainer)(nil)

// stage names the batch that comes next, if it is ready and there is a device to take it to: the loader makes one batch
// more then.
func (s *Session) stage() {
	x, ok := s.model.(stager)
	if d, _, _, _ := s.model.Params().Device(); !ok || d == nil {
		return
	}
	if b := s.loader.Peek(); b != nil {
		x.Stage(b.Batch)
	} else {
		x.Stage(nil)
	}
}

// unstage forgets it: batches are filled anew.
func (s *Session) unstage() error {
	if x, ok := s.model.(stager); ok {
		return x.Unstage()
	}
	return nil
}

// micro runs one micro-batch and adds its numbers to out.
func (s *Session) micro(ctx context.Context, b *data.Batch, step, k, micro int, out *StepResult) error {
	s.stage()
	res, err := s.model.Step(ctx, s.at(b, step, k, micro))
	if err := s.judge(step, res, err); err != nil {
		return err
	}
	share := 1 / float64(micro)
	out.Loss += share * res.Loss
	for i, p := range res.Parts {
		if i == len(out.Parts) {
			out.Parts = append(out.Parts, Value{Name: p.Name, Measure: p.Measure})
		}
		out.Parts[i].Value += share * p.Value
	}
	out.Samples += b.Size
	if s.sum != nil && !(s.sums.watches() && k == micro-1) {
		return s.add(k == 0)
	}
	return nil
}

// at is what the model is told of micro-batch k of a step.
func (s *Session) at(b *data.Batch, step, k, micro int) *feed.Step {
	s.feed.Batch, s.feed.Update, s.feed.Micro, s.feed.Counter = b.Batch, step, k, step*micro+k
	return &s.feed
}

// judge returns what is wrong with a result: err, or a loss that is not finite.
func (s *Session) judge(step int, res *model.Result, err error) error {
	var op *exec.NonFiniteError // with compute.check_nan
	switch {
	case errors.As(err, &op):
		return &NonFiniteError{Step: step, What: op.Error(), Op: true}
	case err != nil:
		return err
	case res != nil && !finite(res.Loss):
		return &NonFiniteError{Step: step, What: fmt.Sprintf("the loss is %v (%s)", res.Loss, partList(res.Parts))}
	}
	return nil
}

// add adds the gradients to the sum, which the first ones begin.
func (s *Session) add(first bool) error {
	if s.sumThere != nil {
		if first {
			return s.sumThere.Copy(s.gradsThere)
		}
		return s.sumThere.Add(s.gradsThere)
	}
	grads := s.model.Params().Grads()
	if first {
		copy(s.sum, grads)
	} else {
		vector.Add(s.sum, s.sum, grads)
	}
	return nil
}

// summed puts the sum over micro-batches, if there are several, instead of the gradients.
func (s *Session) summed() error {
	switch {
	case s.sum == nil:
		return nil
	case s.sumThere != nil:
		return s.gradsThere.Copy(s.sumThere)
	}
	copy(s.model.Params().Grads(), s.sum)
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func partList(parts []model.Part) string {
	s := ""
	for i, p := range parts {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s %v", p.Name, p.Value)
	}
	return s
}
