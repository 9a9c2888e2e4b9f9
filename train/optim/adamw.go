package optim

import (
	"fmt"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/memory"
)

// clipEps is added to the norm before dividing by it, as torch's clip_grad_norm_ does.
const clipEps = 1e-6

// AdamW updates a slab of parameters in place.
type AdamW struct {
	engine        *kernel.Engine
	params, grads []float32
	m, v          []float32
	work          []chunk
	partial       []float64 // sum of squares per chunk
	segments      []Segment
	counters      counters
	cfg           Settings

	// The closures are made once, since passing a new one to For allocates.
	sumBody, stepBody, twinBody func(worker, lo, hi int)
	now                         vector.AdamWStep // scalars of the update in progress
	decay                       float32

	pieces     []piece // the work of StepTwins
	twinWeight float32

	cuda *onCUDA // nil: the host computes
}

// New returns the optimiser of params with gradients grads, slabs of equal
// length. segs lists the parameters in the order of their offsets; elements
// outside all segments and those of frozen ones are never touched. The moments start
// at zero.
func New(engine *kernel.Engine, params, grads []float32, segs []Segment, c Settings) (*AdamW, error) {
	if len(params) != len(grads) {
		return nil, fmt.Errorf("optim: %d parameters but %d gradients: both slabs must have one length", len(params),
			len(grads))
	}
	for _, f := range []struct {
		name string
		ok   bool
		v    float64
	}{
		{"beta1", c.Beta1 >= 0 && c.Beta1 < 1, c.Beta1},
		{"beta2", c.Beta2 >= 0 && c.Beta2 < 1, c.Beta2},
		{"eps", c.Eps > 0, c.Eps},
		{"decay", c.Decay >= 0, c.Decay},
		{"clip_norm", c.ClipNorm >= 0, c.ClipNorm},
	} {
		if !f.ok {
			return nil, fmt.Errorf("optimizer.%s: out of range (got %v)", f.name, f.v)
		}
	}
	work, err := chunks(segs, len(params))
	if err != nil {
		return nil, err
	}
	o := &AdamW{
		engine: engine, params: params, grads: grads,
		m: memory.Floats(len(params)), v: memory.Floats(len(params)),
		segments: slices.Clone(segs), work: work, partial: make([]float64, len(work)), cfg: c,
	}
	o.sumBody = func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			o.partial[i] = vector.SumSq(o.grads[o.work[i].lo:o.work[i].hi])
		}
	}
	o.stepBody = func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			w := o.work[i]
			s := o.stepOf(w)
			vector.AdamW(o.params[w.lo:w.hi], o.m[w.lo:w.hi], o.v[w.lo:w.hi], o.grads[w.lo:w.hi], s)
			w.pull.after(o.params[w.lo:w.hi], w.lo, s.LR)
		}
	}
	o.twinBody = o.stepPieces
	// Written once before an update reads them: memory that is read first is a page of zeros, which each write then
	// copies.
	engine.For(len(work), 1, func(_, lo, hi int) {
		for _, w := range work[lo:hi] {
			clear(o.m[w.lo:w.hi])
			clear(o.v[w.lo:w.hi])
		}
	})
	return o, nil
}

// GradNorm returns the Euclidean norm of scale * gradient over all parameters.
// It is NaN or infinite if and only if an element of the gradient is: squares of
// float32 numbers cannot overflow the float64 sum. The bits do not depend on the
// number of threads.
func (o *AdamW) GradNorm(scale float64) float64 {
	if o.cuda != nil {
		return math.Abs(scale) * o.cuda.norm()
	}
	o.engine.For(len(o.work), 4, o.sumBody)
	var sum float64
	for _, p := range o.partial {
		sum += p
	}
	return math.Abs(scale) * math.Sqrt(sum)
}

// Step makes one update with learning rate lr, times that of each segment, from scale * gradient, whose norm
// (from GradNorm with the same scale) is used for clipping: with clip_norm c > 0
// the gradient is further multiplied by min(1, c / (norm + 1e-6)).
func (o *AdamW) Step(lr, scale, norm float64) {
	o.prepare(lr, scale, norm)
	if o.cuda != nil {
		o.cuda.step(o, false)
		return
	}
	o.engine.For(len(o.work), 1, o.stepBody)
}

// stepOf returns the scalars of the update in progress for a piece of work.
func (o *AdamW) stepOf(w chunk) vector.AdamWStep {
	s := o.now
	s.LR *= w.rate
	if w.decay {
		s.Decay = o.decay
	}
	if p := w.pull; p != nil && p.Decay > 0 {
		s.Decay = float32(p.Decay)
	}
	return s
}

// prepare counts an update and sets its scalars.
func (o *AdamW) prepare(lr, scale, norm float64) {
	o.counters.Steps++
	if c := o.cfg.ClipNorm; c > 0 {
		scale *= min(1, c/(norm+clipEps))
	}
	o.now = vector.AdamWStep{
		LR: float32(lr), Beta1: float32(o.cfg.Beta1), Beta2: float32(o.cfg.Beta2), Eps: float32(o.cfg.Eps),
		Correct1:  float32(1 - math.Pow(o.cfg.Beta1, float64(o.counters.Steps))),
		Correct2:  float32(1 - math.Pow(o.cfg.Beta2, float64(o.counters.Steps))),
		GradScale: float32(scale),
	}
	o.decay = float32(o.cfg.Decay)
}

// Steps returns the number of updates made, which the bias correction depends on.
func (o *AdamW) Steps() int { return o.counters.Steps }

// Moments returns the slabs of first and second moments, laid out as the
// parameters: what a checkpoint saves and what it is read back into. Of an optimiser on a device see Fetch and Store.
func (o *AdamW) Moments() (m, v []float32) { return o.m, o.v }
