package bench

import (
	"fmt"
	"time"

	"github.com/geoalign/geoalign/internal/median"
)

// rebuilds is how often the graphs over the queue are built for their time, after the
// first build, which has no centres to start from.
const rebuilds = 3

// GraphCost is what the graphs over the queue cost, of all modalities together.
type GraphCost struct {
	First  float64 `json:"first_seconds"`   // the first build
	Each   float64 `json:"seconds"`         // a later one, median
	InStep float64 `json:"seconds_in_step"` // of that, what a step waits for: all of it unless Lag > 0
	Period int     `json:"period_steps"`
	Lag    int     `json:"lag_steps"`
}

// StepMS is the share of a step in the cost of rebuilds, in milliseconds.
func (g GraphCost) StepMS() float64 { return 1e3 * g.InStep / float64(g.Period) }

// String is the cost for people.
func (g GraphCost) String() string {
	s := fmt.Sprintf("%10.3f s each (the first %.3f s), every %d steps", g.Each, g.First, g.Period)
	if g.Lag > 0 {
		s += fmt.Sprintf("; beside %d steps, of which %.3f s within", g.Lag, g.InStep)
	}
	return s
}

// firstGraphs builds the first graphs over the full queue.
func (b *bencher) firstGraphs() error {
	if b.work.Graphs() == nil {
		return nil
	}
	g := b.cfg.Objective.Geodesic
	b.graphs = &GraphCost{Period: g.PeriodSteps, Lag: g.LagSteps}
	b.tell("first graph", 0, 1)
	begin := time.Now()
	if err := b.work.Before(b.cfg.Queue.StartSteps); err != nil {
		return err
	}
	b.graphs.First = time.Since(begin).Seconds()
	b.tell("first graph", 1, 1)
	return nil
}

// rebuildGraphs measures later builds, a period apart by the clock that the graphs see,
// so that none is due in the steps that are measured.
func (b *bencher) rebuildGraphs() error {
	if b.work.Graphs() == nil {
		return nil
	}
	var each, inStep []time.Duration
	for i := range rebuilds {
		b.tell("graph rebuild", i, rebuilds)
		clock := b.cfg.Queue.StartSteps + (i+1)*b.graphs.Period
		b.work.clock = clock
		t0 := time.Now()
		if err := b.work.Before(clock); err != nil { // all of it, or its start
			return err
		}
		t1 := time.Now()
		if err := b.work.Graphs().Wait(); err != nil {
			return err
		}
		t2 := time.Now()
		if err := b.work.Before(clock + b.graphs.Lag); err != nil { // what it ends with
			return err
		}
		t3 := time.Now()
		each, inStep = append(each, t3.Sub(t0)), append(inStep, t1.Sub(t0)+t3.Sub(t2))
	}
	b.tell("graph rebuild", rebuilds, rebuilds)
	b.graphs.Each, b.graphs.InStep = median.Of(each).Seconds(), median.Of(inStep).Seconds()
	return nil
}
