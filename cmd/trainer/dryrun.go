package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/train"
)

// plan is what --dry-run reports.
type plan struct {
	Parameters   int     `json:"parameters"`
	Trainable    int     `json:"trainable"`
	Vocabulary   int     `json:"vocabulary"`
	Steps        int     `json:"steps"`
	StepsAnEpoch int     `json:"steps_per_epoch"`
	Nodes        int     `json:"nodes"`
	ParametersMB float64 `json:"parameters_mb"` // with gradients, moments and twins
	QueueMB      float64 `json:"queue_mb"`      // with the graphs over it
	ConnectorMB  float64 `json:"connector_mb,omitempty"`
	RoundedMB    float64 `json:"rounded_mb,omitempty"` // weights in bfloat16
	BuffersMB    float64 `json:"buffers_mb"`
	StepSeconds  float64 `json:"step_seconds"`
	RunSeconds   float64 `json:"run_seconds,omitempty"`
	Shapes       [][]any `json:"shapes"`
}

// dryRunSteps is the number of steps that the estimate is the median of.
const dryRunSteps = 3

// dryRun takes some steps in memory and reports shapes, memory and time. It writes
// nothing.
func dryRun(ctx context.Context, c *cobra.Command, f *runFlags, cfg config.Config, s *train.Session, engine *kernel.Engine) error {
	m := s.Model()
	p := plan{
		Parameters: m.Params().Count(), Vocabulary: s.Vocab(), Steps: s.Span().Total, StepsAnEpoch: s.Span().PerEpoch,
		Nodes: m.Machine().Nodes(),
	}
	for _, q := range m.Params().List() {
		if m.Learnable(q.Name) {
			p.Trainable += q.Len()
		}
		p.Shapes = append(p.Shapes, []any{q.Name, []int(q.Shape)})
	}
	need := m.Footprint()
	p.ParametersMB = mega(need.Parameters + need.Gradients + need.Moments + need.Twins)
	p.QueueMB, p.ConnectorMB, p.RoundedMB, p.BuffersMB = mega(need.Queue), mega(need.Connector), mega(need.Rounded), mega(need.Buffers)
	times := make([]time.Duration, 0, dryRunSteps)
	for i := range 1 + dryRunSteps {
		begin := time.Now()
		if _, err := s.Step(ctx, i); err != nil {
			return err
		}
		if i > 0 {
			times = append(times, time.Since(begin))
		}
	}
	step := median(times)
	p.StepSeconds = step.Seconds()
	p.RunSeconds = p.StepSeconds * float64(p.Steps)
	if f.output.json {
		return printJSON(c.OutOrStdout(), p)
	}
	w := c.OutOrStdout()
	for _, q := range m.Params().List() {
		fmt.Fprintf(w, "  %-52s %v\n", q.Name, []int(q.Shape))
	}
	fmt.Fprintf(w, "\n%d parameters, %d trained, vocabulary %d\n", p.Parameters, p.Trainable, p.Vocabulary)
	fmt.Fprintf(w, "memory: %.1f MB parameters with gradients, moments and twins, %.1f MB queues%s, ", p.ParametersMB, p.QueueMB, graphs(cfg))
	if p.ConnectorMB > 0 {
		fmt.Fprintf(w, "%.1f MB connector, ", p.ConnectorMB)
	}
	if p.RoundedMB > 0 {
		fmt.Fprintf(w, "%.1f MB weights in bfloat16, ", p.RoundedMB)
	}
	fmt.Fprintf(w, "%.1f MB planned buffers\n", p.BuffersMB)
	fmt.Fprintf(w, "%d nodes a step, %.3f s a step with %s", p.Nodes, p.StepSeconds, engine.Describe())
	if p.Steps > 0 {
		fmt.Fprintf(w, ", about %s for %d steps of %d samples", time.Duration(p.RunSeconds*float64(time.Second)).Round(time.Second), p.Steps, cfg.Train.BatchSize*max(1, cfg.Train.AccumulateSteps))
	}
	fmt.Fprintln(w)
	return nil
}

// graphs names what is counted with the queues.
func graphs(c config.Config) string {
	if c.Queue.Size > 0 && c.Objective.UsesGraph() {
		return " with graphs"
	}
	return ""
}

func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// median returns the middle of times.
func median(times []time.Duration) time.Duration {
	s := slices.Clone(times)
	slices.Sort(s)
	return s[len(s)/2]
}
