package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/optim"
)

// Options say how long to measure.
type Options struct {
	Steps, Warmup int           // steps that are measured, at least 1, and before that
	Peak          time.Duration // of each measurement of a matrix product
	Product       time.Duration // of each product in the table of MeasureMachine; 0: no table
	// Group is the processes that make the steps together, all with the same configuration and options; nil: this one
	// alone.
	Group parallel.Group
	// Say is told what is to be known of the ranks; may be nil.
	Say func(format string, args ...any)
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
	// Row is told of each row of a cost table; may be nil.
	Row func(line string)
}

func (o Options) tell(phase string, done, total int) {
	if o.Progress != nil {
		o.Progress(phase, done, total)
	}
}

// The matrix product whose speed is the peak.
const PeakM, PeakN, PeakK = 2048, 1536, 768

// stopwatch is the time that steps spent in each part.
type stopwatch struct {
	step, forward, optimizer, queue time.Duration
}

// bencher measures one configuration.
type bencher struct {
	Options
	cfg       config.Config
	engine    *compute.Engine
	work      *workload
	optimizer *optim.AdamW
	spent     stopwatch
	aside     time.Duration // spent on the peak and the first graphs before the first step
	first     *Startup      // of the first step
	graphs    *GraphCost    // nil without graphs over the queue
	ranked    *ranked       // nil of one process
}

// Measure measures training steps of a configuration on random data. Of several processes all call it, and make
// the steps of a training session with its exchanges; where one fails all do, with a *parallel.Failure.
func Measure(ctx context.Context, cfg config.Config, o Options) (r Result, err error) {
	if o.Group == nil {
		o.Group = parallel.Single{}
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if cfg.Ranks = o.Group.Size(); cfg.Ranks == 1 {
		cfg.Ranks = 0
	}
	r, err = measure(ctx, cfg, o)
	return r, parallel.Agree(o.Group, err)
}

func measure(ctx context.Context, cfg config.Config, o Options) (r Result, err error) {
	if err := cfg.CheckRanks(); err != nil {
		return r, err
	}
	if err := run.SetGroup(o.Group, cfg.Parallel); err != nil {
		return r, err
	}
	engine, err := setup.EngineOf(o.Group, cfg, o.Say)
	if err != nil {
		return r, err
	}
	defer engine.Close()
	b := &bencher{Options: o, cfg: cfg, engine: engine}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	// The peak comes first, so that its memory is given back and does not count.
	begin := time.Now()
	peak := measurePeak(engine, engine.BF16(), o.Peak)
	debug.FreeOSMemory()
	b.aside = time.Since(begin)
	if err := b.start(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	b.spent = stopwatch{}
	b.work.Machine().ResetProfile()
	gpu := deviceOf(engine)
	if b.ranked != nil {
		b.ranked.begin()
	}
	times := make([]time.Duration, 0, o.Steps)
	var before, after, settled runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range o.Steps {
		begin := time.Now()
		if err := b.step(ctx, "measuring", o.Warmup+i, o.Warmup+o.Steps); err != nil {
			return r, err
		}
		times = append(times, time.Since(begin))
	}
	runtime.ReadMemStats(&after)
	high := memory.Peak()
	runtime.GC()
	runtime.ReadMemStats(&settled)
	runtime.KeepAlive(b) // or the optimiser's moments would count as freed
	if gpu != nil {
		if err := b.profileOps(ctx); err != nil {
			return r, err
		}
	}
	r = b.report(times)
	if gpu != nil {
		r.onDevice(gpu, b.work.Machine())
	}
	r.Allocs = float64(after.Mallocs-before.Mallocs) / float64(o.Steps)
	r.HeapGrowth = int64(settled.HeapAlloc) - int64(before.HeapAlloc)
	r.HeapMB, r.PeakMB = memory.MB(int64(settled.HeapAlloc)), memory.MB(high)
	if b.ranked != nil {
		if r.Ranks, err = b.ranked.end(cfg, r.PeakMB); err != nil {
			return r, err
		}
		r.together(cfg)
	}
	// Nor does that of the second time, if what the steps had is given back before.
	if err := b.end(); err != nil {
		return r, err
	}
	debug.FreeOSMemory()
	r.Peak = max(peak, measurePeak(engine, engine.BF16(), o.Peak))
	r.Share = r.GFLOPS / r.Peak
	if engine.BF16() {
		r.PeakFP32 = measurePeak(engine, false, o.Peak)
	}
	return r, ctx.Err()
}

// end gives back what start made.
func (b *bencher) end() (err error) {
	if b.ranked != nil {
		err = b.ranked.session.Close()
	}
	if b.optimizer != nil {
		err = errors.Join(err, b.optimizer.Close())
	}
	if b.work != nil {
		err = errors.Join(err, b.work.Close())
	}
	b.ranked, b.work, b.optimizer, b.graphs = nil, nil, nil, nil
	return err
}

// start builds the model and makes the steps before those that are measured.
func (b *bencher) start(ctx context.Context) (err error) {
	var measured *parallel.Measured
	if b.Group == nil {
		b.Group = parallel.Single{}
	}
	group := b.Group
	if group.Size() > 1 {
		measured = parallel.Measure(group)
		group = measured
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.end())
		}
	}()
	b.work, err = newWorkload(b.cfg, b.engine, group)
	if err := parallel.Agree(b.Group, err); err != nil {
		return err
	}
	if measured != nil {
		b.ranked, err = newRanked(b, measured)
	} else {
		b.optimizer, err = train.NewOptimizer(b.cfg.Optimizer, b.engine, b.work)
	}
	if err := parallel.Agree(b.Group, err); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.firstGraphs(); err != nil {
		return err
	}
	b.aside += time.Since(begin)
	for i := range b.Warmup {
		if err := b.step(ctx, "warm-up", i, b.Warmup); err != nil {
			return err
		}
	}
	return b.rebuildGraphs()
}

// step makes one training step.
func (b *bencher) step(ctx context.Context, phase string, i, total int) error {
	if err := ctx.Err(); err != nil && b.ranked == nil { // ranks agree on that in the step
		return err
	}
	b.tell(phase, i, total)
	if b.ranked != nil {
		defer b.tell(phase, i+1, total)
		begin := time.Now()
		err := b.ranked.step(ctx, i)
		d := time.Since(begin)
		b.spent.step, b.spent.forward = b.spent.step+d, b.spent.forward+d
		return err
	}
	var begin time.Duration
	if b.first == nil {
		begin = process.Age()
	}
	t0 := time.Now()
	if err := b.work.forward(ctx, i); err != nil {
		return err
	}
	t1 := time.Now()
	b.update()
	if gpu := deviceOf(b.engine); gpu != nil { // which makes the update later otherwise
		if err := gpu.Sync(); err != nil {
			return err
		}
	}
	t2 := time.Now()
	if err := b.work.After(); err != nil {
		return err
	}
	t3 := time.Now()
	if b.work.Queue() == nil { // then it is a part of the update
		t2 = t3
	}
	s := &b.spent
	s.step += t3.Sub(t0)
	s.forward, s.optimizer, s.queue = s.forward+t1.Sub(t0), s.optimizer+t2.Sub(t1), s.queue+t3.Sub(t2)
	if b.first == nil {
		b.first = &Startup{Begin: (begin - b.aside).Seconds(), End: (process.Age() - b.aside).Seconds()}
	}
	b.tell(phase, i+1, total)
	return nil
}

// update is what train.Session does after the gradients.
func (b *bencher) update() {
	c := b.cfg
	norm := b.optimizer.GradNorm(1)
	if c.Momentum.Enabled {
		b.optimizer.StepTwins(c.Optimizer.LR, 1, norm, c.Momentum.M)
	} else {
		b.optimizer.Step(c.Optimizer.LR, 1, norm)
	}
}

// updateName says what update holds.
func (b *bencher) updateName() string {
	if b.cfg.Momentum.Enabled {
		return "optimizer and momentum"
	}
	return "optimizer"
}

// measurePeak is the speed of a large matrix product of numbers that are in its
// precision already.
func measurePeak(e *compute.Engine, bf16 bool, d time.Duration) (gflops float64) {
	if gpu := deviceOf(e); gpu != nil {
		return measureDevicePeak(gpu, bf16, d)
	}
	r := rand.New(rand.NewPCG(3, 4))
	operand := func(rows, cols int) gemm.Matrix {
		x := make([]float32, rows*cols)
		fill(r, x)
		if !bf16 {
			return gemm.Matrix{F32: x, LD: cols}
		}
		halves := make([]uint16, len(x))
		vector.ToBF16(halves, x)
		return gemm.Matrix{BF16: halves, LD: cols}
	}
	return kernel.MeasureProduct(e, &gemm.Product{M: PeakM, N: PeakN, K: PeakK, Alpha: 1, BF16: bf16,
		A: operand(PeakM, PeakK), B: operand(PeakK, PeakN), C: make([]float32, PeakM*PeakN), LDC: PeakN}, d)
}

// report turns the measurements into rates.
func (b *bencher) report(times []time.Duration) Result {
	m, p := b.work.Machine(), b.work.Machine().Profile()
	step := median.Of(times).Seconds()
	n, steps := float64(len(times)), b.spent.step.Seconds()
	total := steps
	var rebuild time.Duration // the share of all measured steps in it
	if b.graphs != nil {
		ms := b.graphs.StepMS()
		step += ms / 1e3
		total += n * ms / 1e3
		rebuild = time.Duration(n * ms * float64(time.Millisecond))
	}
	f := b.work.Footprint()
	r := Result{
		Config: b.cfg.Run.Name, System: b.cfg.Model.System, Precision: b.cfg.Compute.Precision,
		Engine: b.engine.Describe(), Threads: b.engine.Threads(), Parameters: b.work.Params().Count(),
		Trained: b.work.Trained(), Batch: b.cfg.Train.BatchSize, Nodes: m.Nodes(), Steps: len(times), First: b.first,
		Score: b.cfg.Objective.ITC.Score, Graphs: b.graphs, StepMS: 1e3 * step,
		Samples: float64(b.cfg.Train.BatchSize) / step, GFLOP: float64(m.FLOPs()) / 1e9,
		GFLOPS: float64(m.FLOPs()) / 1e9 / step, BufferMB: memory.MB(f.Buffers),
		StateMB: memory.MB(f.Total() - f.Buffers),
	}
	s := b.spent
	micro := 1
	if b.ranked != nil { // whose steps are those of training
		micro = max(1, b.cfg.Train.AccumulateSteps)
	}
	runs := float64(max(p.Runs, 1)) / float64(micro) // steps: n on the host
	p.Time = time.Duration(float64(p.Time) * n / runs)
	kernels := p.Time + s.optimizer + s.queue
	r.Outside = max(0, 1-kernels.Seconds()/steps)
	forward, backward := b.work.Passes()
	forward, backward = time.Duration(float64(forward)*n/runs), time.Duration(float64(backward)*n/runs)
	add := func(list *[]Time, name string, nodes int, d time.Duration, flops int64) {
		t := Time{Name: name, Nodes: nodes, MS: 1e3 * d.Seconds() / n, Share: d.Seconds() / total}
		if flops > 0 && d > 0 {
			t.GFLOPS = float64(flops) / 1e9 / d.Seconds()
		}
		*list = append(*list, t)
	}
	add(&r.Phases, "load and read", 0, max(0, s.forward-forward-backward), 0)
	add(&r.Phases, "forward", 0, forward, 0)
	add(&r.Phases, "backward", 0, backward, 0)
	add(&r.Phases, b.updateName(), 0, s.optimizer, 0)
	if b.work.Queue() != nil {
		add(&r.Phases, "queue", 0, s.queue, 0)
	}
	if b.graphs != nil {
		add(&r.Phases, "graph rebuild", 0, rebuild, 0)
	}
	for _, k := range p.Kinds {
		add(&r.Ops, k.Kind, k.Nodes, time.Duration(float64(k.Time)*n/runs), int64(float64(k.FLOPs)*n/runs))
	}
	return r
}
