package bench

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// TestRanks measures two ranks: all tell the same of all, a step is what it computes and what it waits for, and the speed is
// that of the whole batch.
func TestRanks(t *testing.T) {
	cfg, results := measuredRanks(t)
	r := results[0].Ranks
	if r == nil || results[1].Ranks == nil || *r != *results[1].Ranks {
		t.Fatalf("%+v and %+v", r, results[1].Ranks)
	}
	if r.Processes != 2 || r.Rows != cfg.Train.BatchSize/2 || r.Measured || r.MB.Min <= 0 || r.ComputeMS.Min <= 0 || r.WaitedMS.Min <= 0 {
		t.Errorf("%+v", r)
	}
	for _, s := range []Spread{r.StepMS, r.ComputeMS, r.ExchangeMS, r.WaitedMS, r.HiddenMS, r.MB, r.MemoryMB} {
		if s.Min > s.Median || s.Median > s.Max {
			t.Errorf("%+v", s)
		}
	}
	if got := results[0]; got.StepMS != r.StepMS.Max || got.Samples != float64(cfg.Train.BatchSize)/(got.StepMS/1e3) || got.Steps != 3 || got.Batch != cfg.Train.BatchSize {
		t.Errorf("%+v", got)
	}
}

// measuredRanks measures two ranks.
func measuredRanks(t *testing.T, sets ...string) (config.Config, []Result) {
	t.Helper()
	cfg := check.Get(config.Load(tiny, append([]string{"compute.threads=1"}, sets...)))(t)
	results, errs := make([]Result, 2), make([]error, 2)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(2) {
		wg.Go(func() {
			results[i], errs[i] = Measure(t.Context(), cfg, Options{Steps: 3, Warmup: 1, Peak: time.Millisecond, Group: g})
		})
	}
	wg.Wait()
	check.OK(t, errors.Join(errs...))
	return cfg, results
}

// TestRanksOfMicroBatches: the ops are those of all micro-batches of a step.
func TestRanksOfMicroBatches(t *testing.T) {
	_, results := measuredRanks(t, "train.accumulate_steps=2")
	r, gflop := results[0], 0.
	for _, o := range r.Ops {
		gflop += o.GFLOPS * o.MS / 1e3
	}
	if !(math.Abs(gflop-r.GFLOP) <= 1e-6*r.GFLOP) {
		t.Errorf("ops of %v GFLOP in a step of %v", gflop, r.GFLOP)
	}
}

// TestRanksWithGraphs: a step is charged its share of the rebuilds of graphs, as that of one process.
func TestRanksWithGraphs(t *testing.T) {
	_, results := measuredRanks(t, geodesicSets...)
	r := results[0]
	if r.Graphs == nil || r.Graphs.StepMS() <= 0 || r.StepMS != r.Ranks.StepMS.Max+r.Graphs.StepMS() {
		t.Errorf("step %v ms, ranks %+v, graphs %+v", r.StepMS, r.Ranks, r.Graphs)
	}
}

// TestSpread: medians of the steps of a rank, and of the ranks.
func TestSpread(t *testing.T) {
	s := spread([]share{
		{Step: []float64{9, 5, 7}, Waited: []float64{1, 2, 3}, Exchange: []float64{2, 1, 5}, MB: 3},
		{Step: []float64{8, 8, 8}, Waited: []float64{4, 4, 4}, Exchange: []float64{4, 4, 4}, MB: 1},
		{Step: []float64{6, 6, 6}, Waited: []float64{0, 0, 0}, Exchange: []float64{9, 9, 9}, MB: 2, MemoryMB: 10},
	}, config.Config{Ranks: 3, Train: config.Train{BatchSize: 12}})
	want := Ranks{Processes: 3, Rows: 4, StepMS: Spread{6, 7, 8}, ComputeMS: Spread{4, 4, 6}, WaitedMS: Spread{0, 2, 4}, ExchangeMS: Spread{2, 4, 9},
		HiddenMS: Spread{0, 1, 9}, MB: Spread{1, 2, 3}, MemoryMB: Spread{0, 0, 10}}
	if *s != want {
		t.Errorf("%+v, want %+v", *s, want)
	}
	two := []share{{Step: []float64{9, 5}, Waited: []float64{1, 2}, Exchange: []float64{0, 0}}, {Step: []float64{3, 3}, Waited: []float64{0, 0}, Exchange: []float64{0, 0}}}
	if s := spread(two, config.Config{Ranks: 2, Train: config.Train{BatchSize: 2}}); s.StepMS != (Spread{3, 5, 7}) || s.WaitedMS != (Spread{0, .75, 1.5}) {
		t.Errorf("of two steps of two ranks: %+v", *s)
	}
}

// TestRanksThatCannotShare: a batch that is not divisible ends all before a model is built.
func TestRanksThatCannotShare(t *testing.T) {
	cfg := check.Get(config.Load("../cmd/trainer/testdata/tiny.toml", []string{"train.batch_size=7"}))(t)
	var wg sync.WaitGroup
	for _, g := range paralleltest.Ranks(2) {
		wg.Go(func() {
			_, err := Measure(t.Context(), cfg, Options{Steps: 1, Group: g})
			f, list := (*parallel.Failure)(nil), config.Errors(nil)
			if !errors.As(err, &f) || !f.Common() || !errors.As(err, &list) {
				t.Errorf("rank %d: %v", g.Rank(), err)
			}
		})
	}
	wg.Wait()
}
