package model

import (
	"math"
	"runtime"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// allOn is the tiny model with dropout, queue, teacher and all losses.
func allOn() config.Config {
	cfg := tinyConfig()
	cfg.Model.Text.Dropout = 0.1
	return cfg
}

// everyIdea is that model with class tokens of two spheres, a learned metric, geodesics
// and geometric terms.
func everyIdea() config.Config {
	cfg := combinedConfig()
	cfg.Model.Text.Dropout = 0.1
	cfg.Model.Head.Topology = "Multi(4,2)"
	cfg.Objective.ITC.Scores = objectives.Terms{{Kind: "gssf", Weight: 1}, {Kind: "geodesic", Weight: 0.5}}
	cfg.Objective.Geodesic.PeriodSteps = 20
	cfg.Objective.Geometric.Weight, cfg.Objective.Geometric.Search = 1, "clusters"
	return cfg
}

// TestAllocationsDoNotDependOnDepth counts the allocations of a step for two depths
// of every tower.
func TestAllocationsDoNotDependOnDepth(t *testing.T) {
	count := func(cfg config.Config, depth int) float64 {
		cfg.Model.Image.Depth, cfg.Model.Text.Layers, cfg.Model.Text.FusionLayers = depth, depth, depth
		m := build(t, cfg, "builtin", 2)
		s, n := m.feed(randomBatch(m, 1), Control{}), 0
		step := func() {
			s.Update, s.Counter = n, n
			stepOf(t, m, s)
			check.OK(t, m.After())
			n++
		}
		// The least of several measurements: the runtime and the first use of a
		// packing buffer add a few now and then.
		least := math.Inf(1)
		for range 5 {
			least = min(least, testing.AllocsPerRun(5, step))
		}
		return least
	}
	vipmm := tinyViPMM("tucker")
	vipmm.Data.Views = 1 // whose batches the test makes
	sentences := tinyMCSE()
	sentences.Model.Text.Dropout = 0.1
	for name, cfg := range map[string]config.Config{"all losses": allOn(), "every idea": everyIdea(), "vipmm": vipmm, "sentences": sentences, "triplets": tinySimCSE(t, triplets...)} {
		one, three := count(cfg, 1), count(cfg, 3)
		if one != three || one > 20 {
			t.Errorf("%s: a step makes %v allocations at depth 1 and %v at depth 3: want the same, at most 20", name, one, three)
		}
		t.Logf("%s: %v allocations a step", name, one)
	}
}

// TestHeapDoesNotGrow compares the live heap over windows of 50 steps. A kernel makes
// a packing buffer when a thread first needs one, which may come late; a leak shows
// in every window.
func TestHeapDoesNotGrow(t *testing.T) {
	t.Run("all losses", func(t *testing.T) { heapDoesNotGrow(t, allOn()) })
	t.Run("every idea", func(t *testing.T) { heapDoesNotGrow(t, everyIdea()) }) // with rebuilds
}

func heapDoesNotGrow(t *testing.T, cfg config.Config) {
	m := build(t, cfg, "builtin", 2)
	b := randomBatch(m, 1)
	live := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	steps := 0
	run := func(n int) {
		for range n {
			check.OK(t, m.Before(steps))
			step(t, m, b, Control{Step: steps, Alpha: 0.4, UseQueue: true})
			steps++
		}
	}
	run(10)
	var growth []int64
	for range 4 {
		before := live()
		run(50)
		grown := live() - before
		if growth = append(growth, grown); grown < 4<<10 {
			return
		}
	}
	t.Errorf("the heap grew by %v bytes in windows of 50 steps", growth)
}

// TestSameSeedSameBits trains two fresh models for three steps with the same seed and
// the same number of threads.
func TestSameSeedSameBits(t *testing.T) {
	train := func(threads int, backend string) *Trainer {
		m := build(t, allOn(), backend, threads)
		for i := range 3 {
			step(t, m, randomBatch(m, uint64(i)), Control{Step: i, Alpha: 0.2, UseQueue: i > 0})
		}
		return m
	}
	same := func(a, b *Trainer) bool {
		return sameBits(a.params.values, b.params.values) && sameBits(a.params.momentum, b.params.momentum) &&
			sameBits(a.params.grads, b.params.grads) && sameBits(a.queue.Image, b.queue.Image) && sameBits(a.queue.Text, b.queue.Text)
	}
	for _, backend := range []string{"auto", "builtin", "plain"} {
		one, two := train(1, backend), train(2, backend)
		if !same(one, train(1, backend)) || !same(two, train(2, backend)) {
			t.Errorf("%s: two runs of one seed differ", backend)
		}
		t.Logf("%s: 1 and 2 threads give the same bits: %t", backend, same(one, two))
	}
}

// TestStepChangesRandomNumbers: another step counter draws other dropout masks.
func TestStepChangesRandomNumbers(t *testing.T) {
	m := build(t, allOn(), "builtin", 1)
	b := randomBatch(m, 1)
	var losses []float64
	for _, i := range []int{0, 1, 0} {
		res := forward(t, m, b, Control{Step: i, UseQueue: true})
		losses = append(losses, res.Loss)
	}
	if losses[0] == losses[1] || losses[0] != losses[2] {
		t.Errorf("losses of steps 0, 1, 0 are %v", losses)
	}
}
