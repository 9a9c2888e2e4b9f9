package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
)

// StepBeside is how a training step and the loader get on.
type StepBeside struct {
	Steps     int     `json:"steps"`          // of each kind
	StepMS    float64 `json:"step_ms"`        // on real samples, waiting included; mean
	WaitMS    float64 `json:"wait_ms"`        // of it for data
	WaitShare float64 `json:"wait_share"`     // the same as a share
	FreeMS    float64 `json:"free_step_ms"`   // on samples that cost nothing; mean
	SlowDown  float64 `json:"slow_down"`      // real without waiting against free; of the medians
	Needed    float64 `json:"samples_needed"` // a second, by a step that never waits
	// of the processors' time that making the samples takes, as measured with one worker
	Processor float64 `json:"processor_share"`
}

// switchable is a training stream that can stand aside: while free, every sample
// is the same good one at the cost of a copy.
type switchable struct {
	data.Stream
	free atomic.Bool
	row  batch.Row
}

func (s *switchable) Sample(c uint64, row batch.Row) error {
	if !s.free.Load() {
		return s.Stream.Sample(c, row)
	}
	row.Copy(s.row)
	row.Set(batch.IDs, int32(c%uint64(s.EpochSamples())))
	return nil
}

// newSwitchable finds a good sample to repeat.
func newSwitchable(stream data.Stream, columns []data.Column) (*switchable, error) {
	s := &switchable{Stream: stream, row: batch.New(1, columns...).Row(0)}
	var err error
	for c := range uint64(min(stream.EpochSamples(), 100)) {
		if err = stream.Sample(c, s.row); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no sample can be made: %w", err)
}

// measureStepBeside trains for steps steps on real and as many on free samples.
func measureStepBeside(ctx context.Context, cfg config.Config, stream data.Stream, columns []batch.Column,
	tok *tokenizer.Tokenizer, steps int) (*StepBeside, error) {
	engine, err := setup.Engine(cfg)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	s, err := newSwitchable(stream, columns)
	if err != nil {
		return nil, err
	}
	m, err := train.NewModel(cfg, train.ModelOptions{Engine: engine, Tokenizer: tok, Stream: stream})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	session, err := train.NewSession(cfg, train.Options{Engine: engine, Model: m, Stream: s, Tokenizer: tok})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	step := 0
	one := func() (took, wait time.Duration, err error) {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		begin := time.Now()
		r, err := session.Step(ctx, step)
		step++
		return time.Since(begin), r.DataWait, err
	}
	var real, free, busy []time.Duration
	var waited time.Duration
	// They take turns twice, so that a change of the machine's load meets both.
	for _, n := range []int{steps - steps/2, steps / 2} {
		if n == 0 {
			continue
		}
		for _, isFree := range []bool{true, false} {
			s.free.Store(isFree)
			session.Loader().Start(session.Loader().Position())
			// The queue is filled by the time the first step ends; the very first
			// step also touches all memory for the first time.
			if _, _, err := one(); err != nil {
				return nil, err
			}
			for range n {
				took, wait, err := one()
				switch {
				case err != nil:
					return nil, err
				case isFree:
					free = append(free, took)
				default:
					real, busy = append(real, took), append(busy, took-wait)
					waited += wait
				}
			}
		}
	}
	ms := func(list []time.Duration) float64 {
		var sum time.Duration
		for _, d := range list {
			sum += d
		}
		return sum.Seconds() * 1e3 / float64(len(list))
	}
	b := &StepBeside{Steps: steps, StepMS: ms(real), FreeMS: ms(free), WaitMS: waited.Seconds() * 1e3 / float64(steps)}
	b.WaitShare = b.WaitMS / b.StepMS
	b.SlowDown = median.Of(busy).Seconds()/median.Of(free).Seconds() - 1
	b.Needed = float64(cfg.Train.BatchSize*max(1, cfg.Train.AccumulateSteps)) / median.Of(free).Seconds()
	return b, nil
}
