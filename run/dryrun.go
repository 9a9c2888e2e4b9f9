package run

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/internal/memory"
)

// Plan is what a dry run finds out.
type Plan struct {
	Parameters   int     `json:"parameters"`
	Trainable    int     `json:"trainable"`
	Vocabulary   int     `json:"vocabulary"`
	Steps        int     `json:"steps"`
	StepsAnEpoch int     `json:"steps_per_epoch"`
	Nodes        int     `json:"nodes"`
	ParametersMB float64 `json:"parameters_mb"` // with gradients, moments and momentum encoder
	QueueMB      float64 `json:"queue_mb"`      // with the graphs over it
	ConnectorMB  float64 `json:"connector_mb,omitempty"`
	PlansMB      float64 `json:"plans_mb,omitempty"`    // transport plans
	FeaturesMB   float64 `json:"features_mb,omitempty"` // of all micro-batches, with train.accumulate = "features"
	BuffersMB    float64 `json:"buffers_mb"`
	StepSeconds  float64 `json:"step_seconds"`
	RunSeconds   float64 `json:"run_seconds,omitempty"`
	Shapes       [][]any `json:"shapes"`
	Processes    int     `json:"processes,omitempty"`      // that train together; memory is that of each; 0: one
	DeviceMB     float64 `json:"device_mb,omitempty"`      // of its memory that the steps took at most
	DeviceFreeMB float64 `json:"device_free_mb,omitempty"` // that this program has or could have
	RankRows     int     `json:"rows_per_rank,omitempty"`  // of a batch, of each of several processes
	// Devices are the machine and the GPU of each of several processes; nil without GPUs.
	Devices []string `json:"devices,omitempty"`

	Engine  string `json:"engine"`           // what it ran on
	Samples int    `json:"samples"`          // of a step
	Graphs  bool   `json:"graphs,omitempty"` // QueueMB counts graphs
}

// MemoryMB is the memory of a process.
func (p Plan) MemoryMB() float64 {
	return p.ParametersMB + p.QueueMB + p.ConnectorMB + p.PlansMB + p.FeaturesMB + p.BuffersMB
}

// dryRunSteps is the number of steps that the estimate is the median of.
const dryRunSteps = 3

// DryRun opens a run, makes some steps in memory and reports shapes, memory and time. It
// writes nothing.
func DryRun(ctx context.Context, cfg config.Config, o Options) (Plan, error) {
	r, err := openRun(ctx, cfg, o, true)
	if err != nil {
		return Plan{}, err
	}
	defer r.Close()
	return r.plan(ctx)
}

func (r *Run) plan(ctx context.Context) (Plan, error) {
	if r.pairs == nil {
		return r.planFit(ctx)
	}
	s, m := r.Session(), r.pairs
	p := Plan{
		Parameters: m.Params().Count(), Trainable: m.Trained(), Vocabulary: m.Vocab(), Steps: s.Span().Total,
		StepsAnEpoch: s.Span().PerEpoch, Nodes: m.Nodes(), Engine: r.engine.Describe(),
		Samples: r.cfg.Train.BatchSize * max(1, r.cfg.Train.AccumulateSteps), Graphs: r.cfg.Queue.Size > 0 &&
			r.cfg.Has(section.Graph),
	}
	if n := r.group.Size(); n > 1 {
		p.Processes, p.RankRows = n, r.cfg.RankRows()
	}
	for _, q := range m.Params().List() {
		p.Shapes = append(p.Shapes, []any{q.Name, []int(q.Shape)})
	}
	need := m.Footprint()
	p.ParametersMB = memory.MB(need.Parameters + need.Gradients + need.Moments + need.Momentum)
	p.QueueMB, p.ConnectorMB = memory.MB(need.Queue), memory.MB(need.Connector)
	p.PlansMB, p.FeaturesMB, p.BuffersMB = memory.MB(need.Plans), memory.MB(need.Features), memory.MB(need.Buffers)
	times := make([]time.Duration, 0, dryRunSteps)
	for i := range 1 + dryRunSteps {
		begin := time.Now()
		_, err := s.Step(ctx, i)
		if err := parallel.Agree(r.group, err); err != nil {
			return p, err
		}
		if i > 0 {
			times = append(times, time.Since(begin))
		}
	}
	if d, ok := r.engine.Device().(*cuda.Device); ok {
		free, err := d.Free()
		if err != nil {
			return p, err
		}
		now, most := d.Allocated()
		p.DeviceMB, p.DeviceFreeMB = memory.MB(most), memory.MB(free+now)
		if p.Devices, err = devices(r.group, d); err != nil {
			return p, err
		}
	}
	p.StepSeconds = median.Of(times).Seconds()
	p.RunSeconds = p.StepSeconds * float64(p.Steps)
	return p, nil
}

// devices tells the machine and the GPU of each of several ranks.
func devices(g parallel.Group, d *cuda.Device) (list []string, err error) {
	if g.Size() == 1 {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	x := d.Info()
	all, err := g.GatherBytes(fmt.Appendf(nil, "%s on %s, cuda:%d, GPU-%s", x.Name, host, x.Index, x.UUID))
	for _, text := range all {
		list = append(list, string(text))
	}
	return list, err
}

// planFit is plan of a system without steps: it makes the fit.
func (r *Run) planFit(ctx context.Context) (Plan, error) {
	p := Plan{Steps: 1, StepsAnEpoch: 1, Engine: r.engine.Describe()}
	begin := time.Now()
	x, err := r.session.Step(ctx, 0)
	if err != nil {
		return p, err
	}
	p.Samples, p.StepSeconds = x.Samples, time.Since(begin).Seconds()
	p.RunSeconds = p.StepSeconds
	for _, part := range r.model.(fitted).State() {
		for _, t := range part.Tensors() {
			n := 1
			for _, d := range t.Shape {
				n *= d
			}
			p.Parameters += n
			p.Shapes = append(p.Shapes, []any{t.Name, t.Shape})
		}
	}
	p.Trainable, p.ParametersMB = p.Parameters, memory.MB(4*int64(p.Parameters))
	return p, nil
}
