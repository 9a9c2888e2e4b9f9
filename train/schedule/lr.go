package schedule

import (
	"fmt"
	"math"
)

// tick is the number of steps that ALBEF's code holds a warm-up rate for.
const tick = 100

// LR is a learning rate over the steps. Make it with NewLR.
type LR struct {
	kind              string
	peak, warmup, min float64
	warmupSteps       int
	total             int
	perEpoch          float64 // updates
	stepEpochs        int
	stepFactor        float64
}

// NewLR returns the schedule that c describes, with peak rate peak, over span.
// Exactly one of the warm-up durations of c may be set, none means no warm-up.
// Kinds cosine and staircase need span.Total > 0.
func NewLR(peak float64, c Settings, span Span) (LR, error) {
	s := LR{kind: c.Kind, peak: peak, warmup: c.WarmupLR, min: c.MinLR, total: span.Total, perEpoch: span.Epoch,
		stepEpochs: c.StepEpochs, stepFactor: c.StepFactor}
	switch c.Kind {
	case "constant":
	case "step":
		if c.StepEpochs < 1 || !(c.StepFactor > 0 && c.StepFactor <= 1) {
			return LR{}, fmt.Errorf("schedule.step_epochs and step_factor: must be at least 1, and above 0 and at most 1 (got %d and %v)", c.StepEpochs, c.StepFactor)
		}
	case "cosine", "staircase":
		if span.Total <= 0 {
			return LR{}, fmt.Errorf("schedule.kind: %s needs the number of steps: set train.max_steps, max_epochs or max_samples, or kind = \"constant\"", c.Kind)
		}
	default:
		return LR{}, fmt.Errorf("schedule.kind: unknown kind (got %q): use cosine, staircase, step or constant", c.Kind)
	}
	if (c.Kind == "staircase" || c.Kind == "step") && !(span.Epoch > 0) {
		return LR{}, fmt.Errorf("schedule.kind: %s needs the steps of an epoch (got %v)", c.Kind, span.Epoch)
	}
	for _, r := range []struct {
		name string
		v    float64
	}{{"optimizer.lr", peak}, {"schedule.warmup_lr", c.WarmupLR}, {"schedule.min_lr", c.MinLR}} {
		if !(r.v >= 0) || math.IsInf(r.v, 0) {
			return LR{}, fmt.Errorf("%s: must be a finite number >= 0 (got %v)", r.name, r.v)
		}
	}
	n, err := warmupSteps(c, span)
	if err != nil {
		return LR{}, err
	}
	s.warmupSteps = n
	return s, nil
}

// warmupSteps converts the one warm-up duration of c that is set to steps.
func warmupSteps(c Settings, span Span) (int, error) {
	set := 0
	for _, v := range []float64{float64(c.WarmupSteps), c.WarmupEpochs, c.WarmupPercent} {
		if v < 0 || math.IsNaN(v) {
			return 0, fmt.Errorf("schedule.warmup: must be >= 0 (got %v)", v)
		}
		if v != 0 {
			set++
		}
	}
	switch {
	case set > 1:
		return 0, fmt.Errorf("schedule.warmup: set one of warmup_steps, warmup_epochs and warmup_percent (got %d of them)", set)
	case c.WarmupEpochs > 0:
		if !(span.Epoch > 0) {
			return 0, fmt.Errorf("schedule.warmup_epochs: the steps of an epoch are not known: use warmup_steps")
		}
		return int(math.Round(c.WarmupEpochs * span.Epoch)), nil
	case c.WarmupPercent > 0:
		if span.Total <= 0 {
			return 0, fmt.Errorf("schedule.warmup_percent: the steps of the run are not known: use warmup_steps")
		}
		return int(math.Round(c.WarmupPercent / 100 * float64(span.Total))), nil
	}
	return c.WarmupSteps, nil
}

// At returns the rate of the update that follows step earlier ones.
//
// With W warm-up steps and T steps in all:
//
//	step < W:  warmup_lr + (lr - warmup_lr) * step/W
//	cosine:    min_lr + (lr - min_lr)/2 * (1 + cos(pi (step-W)/(T-W)))
//	step:      lr * step_factor^floor(epoch/step_epochs)
//	constant:  lr
//
// Beyond T the last rate is held. A run that ends within the warm-up, such as a
// short trial of a long configuration, never leaves it. Kind staircase is described at staircase.
func (s LR) At(step int) float64 {
	if s.kind == "staircase" {
		return s.staircase(step)
	}
	if step < s.warmupSteps {
		return s.warmup + (s.peak-s.warmup)*float64(step)/float64(s.warmupSteps)
	}
	if s.kind == "step" {
		return s.peak * math.Pow(s.stepFactor, float64(s.epoch(step)/s.stepEpochs))
	}
	if s.kind == "constant" || s.warmupSteps >= s.total {
		return s.peak
	}
	done := float64(min(step, s.total)-s.warmupSteps) / float64(s.total-s.warmupSteps)
	return cosine(s.peak, s.min, done)
}

// staircase is that of ALBEF's code: in epoch 0 the rate climbs once per tick over the warm-up and then
// stays at the peak; from epoch e = 1 on it is the cosine of e over all epochs. The code
// climbs after the update at which a tick begins, so that update t+1 is the first at the
// rate of step t, and sets the rate of an epoch before its first update.
// As there, a warm-up longer than epoch 0 is cut off by epoch 1. Its length is rounded up to ticks.
func (s LR) staircase(step int) float64 {
	epoch := s.epoch(step)
	if epoch == 0 {
		ticks, done := (s.warmupSteps+tick-1)/tick, max(step-1, 0)/tick
		if done >= ticks {
			return s.peak
		}
		return s.warmup + float64(done)*(s.peak-s.warmup)/float64(ticks)
	}
	epochs := s.epoch(s.total-1) + 1
	return cosine(s.peak, s.min, float64(min(epoch, epochs))/float64(epochs))
}

// epoch is the one in which the update begins that follows step earlier ones, from 0 on.
func (s LR) epoch(step int) int { return int(float64(step)/s.perEpoch + 1e-9) }

// WarmupSteps returns the length of the warm-up.
func (s LR) WarmupSteps() int { return s.warmupSteps }

func cosine(peak, low, done float64) float64 {
	return low + 0.5*(peak-low)*(1+math.Cos(math.Pi*done))
}
