package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
)

func newBenchCommand() *cobra.Command {
	var f configFlags
	var out outputFlags
	var steps, warmup int
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a training step: samples per second, GFLOP/s, share of the GEMM peak, time per op",
		Long: `bench trains on random data for some steps and says where the time goes: samples per
second, floating-point operations in matrix products per second, their share of the
speed of a large matrix product measured right before and after (the peak), memory, and
the time of every kind of op. The queue is full and distillation is at its full weight,
as in the middle of a run.`,
		Example: `  trainer bench --config configs/bench/albef-small.toml
  trainer bench --config configs/quickstart.toml --steps 20 --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if steps < 1 || warmup < 0 {
				return usageError{fmt.Errorf("--steps must be > 0 and --warmup >= 0 (got %d and %d)", steps, warmup)}
			}
			cfg, err := f.load(c)
			if err != nil {
				return err
			}
			r, err := bench(c.Context(), cfg, steps, warmup)
			if err != nil {
				return err
			}
			if out.json {
				return printJSON(c.OutOrStdout(), r)
			}
			r.print(c.OutOrStdout())
			return nil
		},
	}
	f.add(c)
	out.add(c)
	c.Flags().IntVar(&steps, "steps", 5, "steps that are measured")
	c.Flags().IntVar(&warmup, "warmup", 2, "steps before that")
	return c
}

// benchmark is what bench reports.
type benchmark struct {
	Config     string      `json:"config"`
	Engine     string      `json:"engine"`
	Threads    int         `json:"threads"`
	Parameters int         `json:"parameters"`
	Batch      int         `json:"batch"`
	Nodes      int         `json:"nodes"`
	Steps      int         `json:"steps"`
	StepMS     float64     `json:"step_ms"` // median
	Samples    float64     `json:"samples_per_second"`
	GFLOP      float64     `json:"gflop_per_step"`
	GFLOPS     float64     `json:"gflops"`
	Peak       float64     `json:"gemm_peak_gflops"`
	Share      float64     `json:"share_of_peak"`
	Outside    float64     `json:"share_outside_kernels"`
	Allocs     float64     `json:"allocations_per_step"`
	HeapGrowth int64       `json:"heap_growth_bytes"` // over the measured steps
	BufferMB   float64     `json:"buffers_mb"`
	HeapMB     float64     `json:"heap_mb"`
	Phases     []benchTime `json:"phases"`
	Ops        []benchTime `json:"ops"`
}

type benchTime struct {
	Name   string  `json:"name"`
	Nodes  int     `json:"nodes,omitempty"`
	MS     float64 `json:"ms"` // per step
	Share  float64 `json:"share"`
	GFLOPS float64 `json:"gflops,omitempty"`
}

// bench measures training steps on random data.
func bench(ctx context.Context, cfg config.Config, steps, warmup int) (benchmark, error) {
	engine, err := newEngine(cfg)
	if err != nil {
		return benchmark{}, err
	}
	defer engine.Close()
	m, err := model.NewALBEF(cfg, cfg.Data.VocabSize, engine)
	if err != nil {
		return benchmark{}, err
	}
	optimizer, err := train.NewOptimizer(cfg.Optimizer, engine, m)
	if err != nil {
		return benchmark{}, err
	}
	if q := m.Queue(); q != nil {
		q.Filled = q.Size()
	}
	r := benchmark{
		Config: cfg.Run.Name, Engine: engine.Describe(), Threads: engine.Threads(), Parameters: m.Params().Count(),
		Batch: cfg.Train.BatchSize, Nodes: m.Machine().Nodes(), Steps: steps, BufferMB: float64(m.Machine().Memory()) / (1 << 20),
	}
	b := randomBatch(cfg, m.MaskRows())
	var forward, update, ema time.Duration
	one := func(step int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		t0 := time.Now()
		if _, err := m.Forward(b, model.Control{Step: step, Alpha: cfg.Objective.Distill.Alpha, UseQueue: true}); err != nil {
			return err
		}
		t1 := time.Now()
		optimizer.Step(cfg.Optimizer.LR, 1, optimizer.GradNorm(1))
		t2 := time.Now()
		m.ClampTemperature()
		if cfg.Momentum.Enabled {
			m.UpdateMomentum(cfg.Momentum.M)
		}
		if err := m.Enqueue(b.IDs); err != nil {
			return err
		}
		forward, update, ema = forward+t1.Sub(t0), update+t2.Sub(t1), ema+time.Since(t2)
		return nil
	}
	for i := range warmup {
		if err := one(i); err != nil {
			return r, err
		}
	}
	peak := kernel.MeasureGEMM(engine, 2048, 1536, 768, time.Second)
	forward, update, ema = 0, 0, 0
	m.Machine().ResetProfile()
	var before, after runtime.MemStats
	times := make([]time.Duration, 0, steps)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range steps {
		begin := time.Now()
		if err := one(warmup + i); err != nil {
			return r, err
		}
		times = append(times, time.Since(begin))
	}
	runtime.ReadMemStats(&after)
	r.Allocs = float64(after.Mallocs-before.Mallocs) / float64(steps)
	runtime.GC()
	var settled runtime.MemStats
	runtime.ReadMemStats(&settled)
	runtime.KeepAlive(optimizer) // or its moments would count as freed
	runtime.KeepAlive(m)
	r.HeapGrowth = int64(settled.HeapAlloc) - int64(before.HeapAlloc)
	r.HeapMB = float64(settled.HeapAlloc) / (1 << 20)
	r.Peak = max(peak, kernel.MeasureGEMM(engine, 2048, 1536, 768, time.Second))
	r.fill(m, times, forward, update, ema)
	return r, nil
}

// fill turns the measurements into rates.
func (r *benchmark) fill(m *model.ALBEF, times []time.Duration, forward, update, ema time.Duration) {
	var total time.Duration
	for _, t := range times {
		total += t
	}
	n := float64(len(times))
	per := func(d time.Duration) float64 { return d.Seconds() * 1e3 / n }
	step := median(times)
	p := m.Machine().Profile()
	r.StepMS = step.Seconds() * 1e3
	r.Samples = float64(r.Batch) / step.Seconds()
	r.GFLOP = float64(m.Machine().FLOPs()) / 1e9
	r.GFLOPS = r.GFLOP / step.Seconds()
	r.Share = r.GFLOPS / r.Peak
	kernels := p.Time + update + ema
	r.Outside = 1 - kernels.Seconds()/total.Seconds()
	share := func(d time.Duration) float64 { return d.Seconds() / total.Seconds() }
	r.Phases = []benchTime{
		{Name: "losses and gradients", MS: per(forward), Share: share(forward)},
		{Name: "optimizer", MS: per(update), Share: share(update)},
		{Name: "momentum and queue", MS: per(ema), Share: share(ema)},
	}
	for _, k := range p.Kinds {
		t := benchTime{Name: k.Kind, Nodes: k.Nodes, MS: per(k.Time), Share: share(k.Time)}
		if k.Time > 0 {
			t.GFLOPS = float64(k.FLOPs) / 1e9 / k.Time.Seconds()
		}
		r.Ops = append(r.Ops, t)
	}
}

func (r benchmark) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d parameters, batch %d, %d nodes, %s\n\n", r.Config, r.Parameters, r.Batch, r.Nodes, r.Engine)
	fmt.Fprintf(w, "  step                   %10.1f ms (median of %d)\n", r.StepMS, r.Steps)
	fmt.Fprintf(w, "  samples per second     %10.1f\n", r.Samples)
	fmt.Fprintf(w, "  matrix products        %10.1f GFLOP a step, %.1f GFLOP/s\n", r.GFLOP, r.GFLOPS)
	fmt.Fprintf(w, "  GEMM peak              %10.1f GFLOP/s (2048 x 1536 x 768)\n", r.Peak)
	fmt.Fprintf(w, "  share of the peak      %10.1f %%\n", 100*r.Share)
	fmt.Fprintf(w, "  time outside kernels   %10.2f %%\n", 100*r.Outside)
	fmt.Fprintf(w, "  allocations per step   %10.1f\n", r.Allocs)
	fmt.Fprintf(w, "  heap growth            %10d bytes over %d steps\n", r.HeapGrowth, r.Steps)
	fmt.Fprintf(w, "  memory                 %10.1f MB heap, of which %.1f MB planned buffers\n\n", r.HeapMB, r.BufferMB)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "phase\tms\tshare\t\n")
	for _, p := range r.Phases {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f %%\t\n", p.Name, p.MS, 100*p.Share)
	}
	fmt.Fprint(t, "\t\t\t\nop\tms\tshare\tnodes\tGFLOP/s\t\n")
	for _, o := range r.Ops {
		speed := ""
		if o.GFLOPS > 0 {
			speed = fmt.Sprintf("%.1f", o.GFLOPS)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.1f %%\t%d\t%s\t\n", o.Name, o.MS, 100*o.Share, o.Nodes, speed)
	}
	t.Flush()
}

// randomBatch makes a batch of noise images and random full-length captions.
func randomBatch(cfg config.Config, maskRows int) model.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	n, l, s := cfg.Train.BatchSize, cfg.Data.Tokens, cfg.Model.Image.Size
	b := model.Batch{Images: make([]float32, 3*n*s*s), Tokens: make([]int32, n*l), Lengths: make([]int32, n), IDs: make([]int32, n)}
	for i := range b.Images {
		b.Images[i] = float32(r.NormFloat64())
	}
	for i := range b.Tokens {
		b.Tokens[i] = r.Int32N(int32(cfg.Data.VocabSize))
	}
	for i := range b.IDs {
		b.Lengths[i], b.IDs[i] = int32(l), int32(i)
	}
	if maskRows > 0 {
		b.Masked = append([]int32(nil), b.Tokens...)
		b.MaskPlaces, b.MaskLabels = make([]int32, maskRows), make([]int32, maskRows)
		for i := range maskRows {
			p := i * n * l / maskRows
			b.MaskPlaces[i], b.MaskLabels[i] = int32(p), b.Tokens[p]
		}
	}
	return b
}
