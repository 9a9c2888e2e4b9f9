package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/rng"
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
	tokenizer *tokenizer.Tokenizer

	span      schedule.Span
	lr        schedule.LR
	alphaRamp int
	sum       []float32    // accumulated gradients; nil with one micro-batch
	masker    *data.Masker // nil without masked language modelling
	masked    data.Masked
	parts     []Value
	keys      keys
}

// keys are the momentum features of a step's micro-batches, which enter the queue
// with the update: a step that is not made leaves the queue as it was.
type keys struct {
	model.Keys
	ids []int32
}

var _ Stepper = (*Session)(nil)

// NewSession wires a session. The engine, the stream and the tokenizer stay the
// caller's.
func NewSession(cfg config.Config, engine *kernel.Engine, stream data.Stream, tok *tokenizer.Tokenizer) (*Session, error) {
	s := &Session{cfg: cfg, tokenizer: tok}
	var err error
	epoch := stream.EpochSamples()
	if n := cfg.Data.OverfitSamples; n > 0 {
		epoch = n
	}
	if s.span, err = schedule.NewSpan(cfg.Train, epoch, cfg.Data.DropLast); err != nil {
		return nil, err
	}
	if s.lr, err = schedule.NewLR(cfg.Optimizer.LR, cfg.Schedule, s.span); err != nil {
		return nil, err
	}
	d := cfg.Objective.Distill
	s.alphaRamp = max(d.RampSteps, int(math.Round(d.RampEpochs*float64(s.span.PerEpoch))))
	if s.model, err = newTrainingSystem(cfg, tok, engine); err != nil {
		return nil, err
	}
	if s.optimizer, err = NewOptimizer(cfg.Optimizer, engine, s.model); err != nil {
		return nil, err
	}
	if cfg.Train.AccumulateSteps > 1 {
		s.sum = make([]float32, len(s.model.Params().Grads()))
	}
	if m, ok := s.model.(masking); ok && m.MaskRows() > 0 {
		s.masker = &data.Masker{Prob: cfg.Objective.MLM.Prob, Vocab: tok.Size(), MaskID: tok.MaskID(), Capacity: m.MaskRows()}
		if err := s.masker.Check(); err != nil {
			return nil, err
		}
	}
	s.loader, err = data.NewLoader(stream, tok, data.LoaderConfig{
		BatchSize: cfg.Train.BatchSize, Tokens: cfg.Data.Tokens, ImageSize: cfg.Model.Image.Size, Views: cfg.Data.Views,
		Workers: cfg.Data.Workers, Prefetch: cfg.Data.Prefetch, MaxBadShare: cfg.Data.MaxBadShare,
		Overfit: cfg.Data.OverfitSamples, DropLast: cfg.Data.DropLast,
	})
	return s, err
}

// NewOptimizer returns the optimiser of all parameters of m that training changes, and
// of the momentum twins of m for StepTwins.
func NewOptimizer(c config.Optimizer, engine *kernel.Engine, m Trainable) (*optim.AdamW, error) {
	p := m.Params()
	var segs []optim.Segment
	for _, q := range p.List() {
		if !m.Learnable(q.Name) {
			continue
		}
		decay, err := optim.Decays(c.NoDecay, q.Name, q.Shape)
		if err != nil {
			return nil, err
		}
		segs = append(segs, optim.Segment{Name: q.Name, Offset: p.Offset(q), Len: q.Len(), Decay: decay})
	}
	o, err := optim.New(engine, p.Values(), p.Grads(), segs, c)
	if err != nil {
		return nil, err
	}
	var twins []optim.Twin
	p.Twins(func(offset int, twin []float32) { twins = append(twins, optim.Twin{Offset: offset, Values: twin}) })
	return o, o.SetTwins(twins)
}

// Model returns the model in training.
func (s *Session) Model() System { return s.model }

// Vocab returns the size of the vocabulary.
func (s *Session) Vocab() int { return s.tokenizer.Size() }

// Span returns the length of the run.
func (s *Session) Span() schedule.Span { return s.span }

// Loader returns the training data.
func (s *Session) Loader() *data.Loader { return s.loader }

// Close ends the loader and what the model does beside the steps.
func (s *Session) Close() error { return errors.Join(s.loader.Close(), s.model.Close()) }

// Step implements Stepper: losses and gradients of the micro-batches, the test for
// finite numbers, the update, the twins, the queue.
//
// ALBEF's code moves the twins at the start of the next forward pass and
// clamps the temperature there; doing both at the end of the update gives the same
// numbers and leaves nothing half done when a step fails. The queue takes the
// features of all micro-batches at once at the end, so that each micro-batch sees
// the same queue.
func (s *Session) Step(ctx context.Context, step int) (StepResult, error) {
	micro := max(1, s.cfg.Train.AccumulateSteps)
	out := StepResult{LR: s.lr.At(step), Parts: s.parts[:0]}
	s.keys.Clear()
	s.keys.ids = s.keys.ids[:0]
	if err := s.model.Before(step); err != nil {
		return out, err
	}
	var bad error
	for k := range micro {
		begin := time.Now()
		b, err := s.loader.Next(ctx)
		if err != nil {
			return out, err
		}
		out.DataWait += time.Since(begin)
		if bad == nil {
			bad = s.micro(b, step, k, micro, &out)
		}
		s.loader.Recycle(b)
		var notFinite *NonFiniteError
		if bad != nil && !errors.As(bad, &notFinite) {
			return out, bad
		}
	}
	s.parts = out.Parts
	if bad != nil {
		return out, bad
	}
	if s.sum != nil {
		copy(s.model.Params().Grads(), s.sum)
	}
	scale := 1 / float64(micro)
	out.GradNorm = s.optimizer.GradNorm(scale)
	if !finite(out.GradNorm) {
		return out, &NonFiniteError{Step: step, What: fmt.Sprintf("the gradient norm is %v (loss %v)", out.GradNorm, out.Loss)}
	}
	if s.cfg.Momentum.Enabled {
		s.optimizer.StepTwins(out.LR, scale, out.GradNorm, schedule.Momentum(step+1, s.cfg.Momentum.M, s.cfg.Momentum.RampSteps))
	} else {
		s.optimizer.Step(out.LR, scale, out.GradNorm)
	}
	s.model.ClampTemperature()
	out.Temperature = s.model.Temperature()
	return out, s.enqueue(micro)
}

// enqueue pushes the features of every micro-batch.
func (s *Session) enqueue(micro int) error {
	q, rows := s.model.Queue(), len(s.keys.ids)/micro
	if q == nil || rows == 0 {
		return nil
	}
	for k := range micro {
		if err := q.Push(s.keys.Part(k, micro), s.keys.ids[k*rows:][:rows]); err != nil {
			return err
		}
	}
	return nil
}

// micro runs one micro-batch and adds its numbers to out.
func (s *Session) micro(b *data.Batch, step, k, micro int, out *StepResult) error {
	in := model.Batch{Images: b.Images, Views: b.Views, Tokens: b.Tokens, Lengths: b.Lengths, IDs: b.IDs}
	counter := step*micro + k
	if s.masker != nil {
		r := rng.New(s.cfg.Run.Seed, rng.Mask, uint64(counter))
		if err := s.masker.Apply(r, b.Tokens, b.Lengths, &s.masked); err != nil {
			return err
		}
		in.Masked, in.MaskPlaces, in.MaskLabels = s.masked.Tokens, s.masked.Positions, s.masked.Labels
	}
	res, err := s.model.Forward(in, model.Control{
		Step:     counter,
		Alpha:    schedule.Alpha(step, s.cfg.Objective.Distill.Alpha, s.alphaRamp),
		UseQueue: step >= s.cfg.Queue.StartSteps,
		Uniform:  s.uniform(step),
	})
	var op *exec.NonFiniteError // with compute.check_nan
	if errors.As(err, &op) {
		return &NonFiniteError{Step: step, What: op.Error()}
	}
	if err != nil {
		return err
	}
	if !finite(res.Loss) {
		return &NonFiniteError{Step: step, What: fmt.Sprintf("the loss is %v (%s)", res.Loss, partList(res.Parts))}
	}
	share := 1 / float64(micro)
	out.Loss += share * res.Loss
	for i, p := range res.Parts {
		if k == 0 {
			out.Parts = append(out.Parts, Value{Name: p.Name, Measure: p.Measure})
		}
		out.Parts[i].Value += share * p.Value
	}
	out.Samples += b.Size
	if s.sum != nil {
		grads := s.model.Params().Grads()
		if k == 0 {
			copy(s.sum, grads)
		} else {
			vector.Add(s.sum, s.sum, grads)
		}
	}
	if s.model.Queue() == nil {
		return nil
	}
	keys, err := s.model.MomentumFeatures()
	if err != nil || keys.Image == nil {
		return err
	}
	s.keys.Append(keys)
	s.keys.ids = append(s.keys.ids, b.IDs...)
	return nil
}

// uniform is the share of the uniform distribution in the targets of the contrast at a
// step: that of objective.mafa from the second epoch on.
func (s *Session) uniform(step int) float64 {
	if step < s.span.PerEpoch {
		return 0
	}
	return s.cfg.Objective.MAFA.Uniform
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
