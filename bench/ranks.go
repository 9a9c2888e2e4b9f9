package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

// Spread is a number over all ranks.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Ranks is what a step costs several processes. Times are medians of the steps, in milliseconds.
type Ranks struct {
	Processes  int    `json:"processes"`
	Rows       int    `json:"rows_per_rank"`
	StepMS     Spread `json:"step_ms"`
	ComputeMS  Spread `json:"compute_ms"`  // of the step, what is not a wait for an exchange
	ExchangeMS Spread `json:"exchange_ms"` // of all exchanges, each with the wait for slower ranks
	WaitedMS   Spread `json:"waited_ms"`   // of the step, what it has waited for exchanges
	HiddenMS   Spread `json:"hidden_ms"`   // of the exchanges, what went on beside computation
	MB         Spread `json:"mb_per_step"` // that a rank gives to sums and to what is gathered
	MemoryMB   Spread `json:"peak_memory_mb"`
	// Measured says that the group has told how long exchanges took beside computation. Else they are counted from when
	// the first was begun to the end of the wait for the last, which is the longest that they can have taken.
	Measured bool `json:"exchange_measured"`
}

// share is what one rank tells of its steps.
type share struct {
	Step, Waited, Exchange []float64 // of each step, ms
	MB, MemoryMB           float64
	Measured               bool
}

// ranked makes steps with other processes, by the session of a training run.
type ranked struct {
	group   *parallel.Measured
	session *train.Session
	own     share
	bytes   int64 // given before the steps that are measured
}

// newRanked wires the session of a workload.
func newRanked(b *bencher, g *parallel.Measured) (*ranked, error) {
	cfg := b.cfg
	cfg.Data.OverfitSamples = 0
	s, err := train.NewSession(cfg, train.Options{Engine: b.engine, Model: midway{b.work},
		Stream: newNoise(cfg, b.work.Columns())})
	if err != nil {
		return nil, err
	}
	return &ranked{group: g, session: s}, nil
}

// step makes a step.
func (r *ranked) step(ctx context.Context, i int) error {
	before, waited := r.group.Times(), r.group.Waited
	begin := time.Now()
	_, err := r.session.Step(ctx, i)
	if err != nil {
		return err
	}
	s := &r.own
	s.Step = append(s.Step, millis(time.Since(begin)))
	s.Waited = append(s.Waited, millis(r.group.Waited-waited))
	s.Exchange = append(s.Exchange, millis(r.group.Times().Exchange-before.Exchange))
	return nil
}

// begin forgets the steps so far.
func (r *ranked) begin() {
	r.own = share{Measured: r.group.Overlaps()}
	r.bytes = r.group.Times().Bytes
}

// end gathers what all ranks have measured.
func (r *ranked) end(cfg config.Config, memoryMB float64) (*Ranks, error) {
	s := &r.own
	s.MemoryMB = memoryMB
	s.MB = float64(r.group.Times().Bytes-r.bytes) / (1 << 20) / float64(max(1, len(s.Step)))
	text, err := json.Marshal(s)
	if err := parallel.Agree(r.group, err); err != nil {
		return nil, err
	}
	texts, err := r.group.GatherBytes(text)
	if err != nil {
		return nil, err
	}
	all := make([]share, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, fmt.Errorf("bench: what rank %d has measured: %w", i, err)
		}
	}
	return spread(all, cfg), nil
}

// spread puts the measurements of all ranks together.
func spread(all []share, cfg config.Config) *Ranks {
	of := func(value func(s share) float64) Spread {
		x := make([]float64, len(all))
		for i, s := range all {
			x[i] = value(s)
		}
		slices.Sort(x)
		return Spread{x[0], median.Of(x), x[len(x)-1]}
	}
	each := func(value func(s share, i int) float64) func(share) float64 {
		return func(s share) float64 {
			x := make([]float64, len(s.Step))
			for i := range x {
				x[i] = value(s, i)
			}
			return median.Of(x)
		}
	}
	return &Ranks{
		Processes: len(all), Rows: cfg.RankRows(), Measured: all[0].Measured,
		StepMS:     of(each(func(s share, i int) float64 { return s.Step[i] })),
		ComputeMS:  of(each(func(s share, i int) float64 { return s.Step[i] - s.Waited[i] })),
		WaitedMS:   of(each(func(s share, i int) float64 { return s.Waited[i] })),
		ExchangeMS: of(each(func(s share, i int) float64 { return s.Exchange[i] })),
		HiddenMS:   of(each(func(s share, i int) float64 { return math.Max(0, s.Exchange[i]-s.Waited[i]) })),
		MB:         of(func(s share) float64 { return s.MB }),
		MemoryMB:   of(func(s share) float64 { return s.MemoryMB }),
	}
}

func millis(d time.Duration) float64 { return 1e3 * d.Seconds() }

// midway is a workload as a session sees it: in the middle of a run.
type midway struct{ *workload }

var _ train.System = midway{}

// Before implements train's starter: no rebuild of graphs is due.
func (m midway) Before(int) error { return m.workload.Before(m.clock) }

// Step implements train.System.
func (m midway) Step(ctx context.Context, s *feed.Step) (*model.Result, error) {
	at := *s
	at.Update = late
	return m.workload.Step(ctx, &at)
}

// noise is an endless stream of the rows of a random batch.
type noise struct{ rows *batch.Batch }

var _ data.Stream = noise{}

func newNoise(cfg config.Config, columns []batch.Column) noise {
	cfg.Ranks = 0
	return noise{randomBatch(cfg, columns)}
}

// Columns implements data.Stream.
func (n noise) Columns() []data.Column { return n.rows.Columns() }

// Sample implements data.Stream.
func (n noise) Sample(c uint64, row batch.Row) error {
	row.Copy(n.rows.Row(int(c % uint64(n.rows.Rows()))))
	return nil
}

// EpochSamples implements data.Stream.
func (n noise) EpochSamples() int { return 1 << 30 }
