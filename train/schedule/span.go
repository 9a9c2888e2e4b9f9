package schedule

import (
	"fmt"
	"math"
	"time"
)

// Span is the length of a run.
type Span struct {
	Total    int           // optimiser steps of the run; 0: not known (a run limited by minutes)
	PerEpoch int           // optimiser steps that count as one epoch, at least 1: the whole ones of Epoch
	Epoch    float64       // optimiser steps of a pass over the data; with accumulated batches it may end within a step
	Limit    time.Duration // wall-clock limit; 0: none
}

// Length is how long a run is: exactly one of the max fields is set.
type Length struct {
	BatchSize, AccumulateSteps int
	MaxSteps, MaxSamples       int
	MaxEpochs, MaxMinutes      float64
}

// NewSpan converts the one duration of c that is set to steps, for an epoch of
// the given number of samples. dropLast says whether a short last batch of an
// epoch is dropped.
func NewSpan(c Length, samplesPerEpoch int, dropLast bool) (Span, error) {
	if c.BatchSize <= 0 {
		return Span{}, fmt.Errorf("train.batch_size: must be > 0 (got %d)", c.BatchSize)
	}
	if samplesPerEpoch <= 0 {
		return Span{}, fmt.Errorf("train: the training data has no samples (got %d): check [data]", samplesPerEpoch)
	}
	batches := (samplesPerEpoch + c.BatchSize - 1) / c.BatchSize
	if dropLast {
		batches = samplesPerEpoch / c.BatchSize
	}
	if batches == 0 {
		return Span{}, fmt.Errorf("train.batch_size: an epoch of %d samples has no full batch of %d: lower it or set data.drop_last = false", samplesPerEpoch, c.BatchSize)
	}
	acc := max(c.AccumulateSteps, 1)
	span := Span{PerEpoch: max(batches/acc, 1), Epoch: float64(batches) / float64(acc)}

	set := 0
	for _, v := range []float64{float64(c.MaxSteps), c.MaxEpochs, float64(c.MaxSamples), c.MaxMinutes} {
		if v < 0 || math.IsNaN(v) {
			return Span{}, fmt.Errorf("train.max_*: must be >= 0 (got %v)", v)
		}
		if v > 0 {
			set++
		}
	}
	if set != 1 {
		return Span{}, fmt.Errorf("train: set exactly one of max_steps, max_epochs, max_samples and max_minutes (got %d of them)", set)
	}
	switch {
	case c.MaxSteps > 0:
		span.Total = c.MaxSteps
	case c.MaxEpochs > 0:
		span.Total = max(1, int(math.Ceil(c.MaxEpochs*float64(batches)/float64(acc)-1e-9)))
	case c.MaxSamples > 0:
		per := c.BatchSize * acc
		span.Total = (c.MaxSamples + per - 1) / per
	default:
		span.Limit = Seconds(60 * c.MaxMinutes)
	}
	return span, nil
}
