package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/memory"
)

// Footprint is the memory that training takes, in bytes, by what it is for.
type Footprint struct {
	Parameters int64
	Gradients  int64 // with their sum over micro-batches where there are several
	Moments    int64 // of the optimiser, two for each parameter
	Momentum   int64 // copies of the momentum encoder
	Queue      int64
	Connector  int64 // parameters of the frozen model of objective.mafa
	Plans      int64 // transport plans of objective.klot
	Features   int64 // of all micro-batches and their gradients, with train.accumulate = "features"
	Buffers    int64 // planned for the results of a step
	Batches    int64 // prepared ahead; of an Estimate, and 0 in the footprint of a model, which has no loader
}

// Total returns the sum.
func (f Footprint) Total() int64 {
	return f.Parameters + f.Gradients + f.Moments + f.Momentum + f.Queue + f.Connector + f.Plans +
		f.Features + f.Buffers + f.Batches
}

// String lists the parts that are not empty.
func (f Footprint) String() string {
	var parts []string
	for _, p := range []struct {
		name  string
		bytes int64
	}{
		{"parameters", f.Parameters}, {"gradients", f.Gradients}, {"moments", f.Moments},
		{"momentum encoder", f.Momentum}, {"queue", f.Queue}, {"connector", f.Connector}, {"transport plans", f.Plans}, {"features of micro-batches", f.Features}, {"results of a step", f.Buffers}, {"batches prepared ahead", f.Batches},
	} {
		if p.bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", p.name, gigabytes(p.bytes)))
		}
	}
	return strings.Join(parts, ", ")
}

func gigabytes(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// Footprint returns the memory of training this model.
func (p *Trainer) Footprint() Footprint { return p.step.footprint }

// footprint returns the memory of the parameters asked for so far, allocated or not.
func (p *Params) footprint() (f Footprint) {
	for _, q := range p.list {
		f.Parameters += 4 * int64(q.Len())
		if q.Momentum {
			f.Momentum += 4 * int64(q.Len())
		}
		if !q.Locked {
			f.Gradients += 4 * int64(q.Len())
		}
	}
	f.Moments = 2 * f.Gradients
	return f
}

// MemoryError refuses a model that cannot be trained on this machine. It comes before
// the memory is taken.
type MemoryError struct {
	Need   Footprint // without buffers where even the rest is too large
	Limit  int64     // bytes that the machine has, or that are free on the device
	Device string    // whose memory it is; empty: the machine's
}

// Error says what is needed and what there is.
func (e *MemoryError) Error() string {
	hint := "lower queue.size or the width and depth of the model"
	if e.Need.Buffers > 0 {
		hint = "lower train.batch_size or the width and depth of the model, or, with towers, the image size, or set compute.recompute = true"
	}
	if e.Need.Plans > e.Limit/2 {
		hint = "lower train.batch_size or objective.klot.rows, whose plans take 32 bytes for each pair of rows"
	}
	if e.Need.Batches > e.Limit/2 {
		hint = "lower data.prefetch, data.workers, train.batch_size or the image size"
	}
	if e.Device != "" {
		return fmt.Sprintf("model: training takes at least %s of the device's memory (%s) and of %s %s are free: %s, or end what else runs there",
			gigabytes(e.Need.Total()), e.Need, e.Device, gigabytes(e.Limit), hint)
	}
	return fmt.Sprintf("model: training takes at least %s of memory (%s) and this machine has %s: %s",
		gigabytes(e.Need.Total()), e.Need, gigabytes(e.Limit), hint)
}

// totalMemory is what the machine has, 0 if that is not known. Tests replace it.
var totalMemory = memory.Total

// fits returns a *MemoryError for what is larger than the machine.
func (f Footprint) fits() error {
	if limit := totalMemory(); limit > 0 && f.Total() > limit {
		return &MemoryError{Need: f, Limit: limit}
	}
	return nil
}

// there is what of an estimate lies on a device at least. Of results of r bytes beside gradients of g, f.Buffers are
// those that find no room where the gradients will be, r - g; where results take half, those are r/2 - g, and g is half
// of the moments.
func (f Footprint) there(half bool) Footprint {
	x := Footprint{Parameters: f.Parameters, Gradients: f.Gradients, Moments: f.Moments, Momentum: f.Momentum,
		Buffers: f.Buffers}
	if half {
		x.Buffers = max((f.Buffers-f.Moments/2)/2, 0)
	}
	return x
}

// fitsOn is fits for what of an estimate lies on a device, of which it says the least: with bfloat16 results may take
// half.
func (f Footprint) fitsOn(d *cuda.Device, half bool) error {
	there := f.there(half)
	free, err := d.Free()
	if err == nil && there.Total() > free {
		err = &MemoryError{there, free, d.Info().Name}
	}
	return err
}

// compile compiles the step of a model with the footprint f so far, if it fits into
// the machine.
func (f Footprint) compile(b *net, c exec.Config) (*exec.Machine, error) {
	limit := totalMemory()
	if limit > 0 && onDevice(c.Engine) == nil {
		c.MaxBytes = max(limit-f.Total(), 1)
	}
	m, err := exec.Compile(b.g, c)
	if full := (*exec.MemoryError)(nil); errors.As(err, &full) {
		f.Buffers = full.Need
		return nil, &MemoryError{Need: f, Limit: limit}
	}
	return m, err
}
