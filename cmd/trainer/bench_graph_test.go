package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
)

// geodesicSets make the contrast of tiny geodesic.
var geodesicSets = []string{"objective.itc.score=geodesic", "objective.geodesic.layers=4,8", "objective.geodesic.period_steps=20"}

// TestBenchGraphs checks that graphs exist from the first step on, that no rebuild is
// within a measured step, and that the step is charged its share.
func TestBenchGraphs(t *testing.T) {
	for _, lag := range []string{"0", "3"} {
		cfg, err := config.Load(tiny, append([]string{"objective.geodesic.lag_steps=" + lag}, geodesicSets...))
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		r, err := bench(t.Context(), cfg, benchOptions{steps: 2, warmup: 1, peak: time.Millisecond,
			progress: func(phase string, done, total int) {
				if done == total {
					shown = append(shown, phase)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(shown, ", "); got != "first graph, warm-up, graph rebuild, measuring" {
			t.Errorf("lag %s: progress %s", lag, got)
		}
		g := r.Graphs
		if g == nil || g.First <= 0 || g.Each <= 0 || g.InStep <= 0 || g.InStep > g.Each || g.Period != 20 {
			t.Fatalf("lag %s: graphs cost %+v", lag, g)
		}
		var sum float64
		var rebuild benchTime
		for _, p := range r.Phases {
			sum += p.Share
			if p.Name == "graph rebuild" {
				rebuild = p
			}
		}
		if want := 1e3 * g.InStep / 20; math.Abs(rebuild.MS-want) > 1e-3*want+1e-5 || r.StepMS <= want {
			t.Errorf("lag %s: %v ms of rebuilds in a step of %v ms, want %v", lag, rebuild.MS, r.StepMS, want)
		}
		if sum < 0.9 || sum > 1.001 {
			t.Errorf("lag %s: the phases are %.3f of the step: %+v", lag, sum, r.Phases)
		}
		if r.Score != "geodesic" {
			t.Errorf("score %q", r.Score)
		}
		for _, o := range r.Ops {
			if strings.HasPrefix(o.Name, "geodesic") {
				sum = -1
			}
		}
		if sum != -1 {
			t.Errorf("lag %s: no op of the geodesic among %+v", lag, r.Ops)
		}
	}
}

// TestBenchGraphsAreBuilt checks that systems of two and of one modality have a graph
// before their first step, and when it was built last.
func TestBenchGraphsAreBuilt(t *testing.T) {
	for _, system := range []string{"albef", "moco"} {
		sets := append([]string{"model.system=" + system}, geodesicSets...)
		if system == "moco" {
			sets = append(sets, "objective.itm.weight=0", "objective.mlm.weight=0", "objective.itc.in_batch_weight=0", "objective.distill.alpha=0", "data.views=2", "eval.rerank_top=0")
		}
		cfg, err := config.Load(tiny, sets)
		if err != nil {
			t.Fatal(err)
		}
		e, err := compute.New(compute.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		w, err := newWorkload(cfg, e)
		if err != nil {
			t.Fatal(err)
		}
		b := &bencher{cfg: cfg, work: w, benchOptions: benchOptions{progress: func(string, int, int) {}}}
		if w.graphs == nil || w.graphs.Begun >= 0 {
			t.Fatalf("%s: graphs %+v before the first is built", system, w.graphs)
		}
		if err := b.firstGraphs(); err != nil {
			t.Fatal(err)
		}
		if w.graphs.Image.Used == 0 || w.graphs.Begun != cfg.Queue.StartSteps {
			t.Errorf("%s: %d centres, begun at %d", system, w.graphs.Image.Used, w.graphs.Begun)
		}
		if err := b.rebuildGraphs(); err != nil {
			t.Fatal(err)
		}
		if want := cfg.Queue.StartSteps + rebuilds*20; w.graphs.Begun != want {
			t.Errorf("%s: the last rebuild at %d, want %d", system, w.graphs.Begun, want)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBenchGraphsCompared sets a geodesic step beside the cosine's.
func TestBenchGraphsCompared(t *testing.T) {
	quickPeak(t)
	file := filepath.Join(t.TempDir(), "cosine.json")
	args := []string{"bench", "--config", tiny, "--steps", "2", "--warmup", "0"}
	stdout, _ := must(t, exitDone, append(args, "--save", file)...)
	if strings.Contains(stdout, "graph rebuild") {
		t.Errorf("cosines with a graph: %s", stdout)
	}
	args = append(args, "--compare", file)
	for _, s := range geodesicSets {
		args = append(args, "--set", s)
	}
	stdout, stderr := must(t, exitDone, args...)
	contains(t, stdout, "graph rebuild", "s each (the first", "every 20 steps", "one graph rebuild ms", "a step takes ", "of the peak memory that it did before")
	contains(t, stderr, "note: score differs: cosine in "+file+", geodesic now")
}

// TestBenchGraphsVary makes a table of both scores, in turns.
func TestBenchGraphsVary(t *testing.T) {
	quickPeak(t)
	scores := "objective.itc.score=cosine,geodesic"
	stdout, _ := must(t, exitDone, "bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--set", "objective.geodesic.layers=4,8",
		"--vary", scores, "--vary", scores)
	if n := strings.Count(stdout, "graph rebuild s\n"); n != 2 {
		t.Errorf("%d tables with rebuilds: %s", n, stdout)
	}
	stdout, _ = must(t, exitDone, "bench", "--config", tiny, "--steps", "1", "--warmup", "0", "--vary", "batch=4,8")
	if strings.Contains(stdout, "rebuild") {
		t.Errorf("cosines with rebuilds: %s", stdout)
	}
}

// TestBenchAgainst measures in turns and checks the figures against the ratios of turns.
func TestBenchAgainst(t *testing.T) {
	args := []string{"bench", "--config", tiny, "--steps", "3", "--warmup", "0", "--set", geodesicSets[0], "--set", geodesicSets[1],
		"--against", "objective.itc.score=cosine"}
	stdout, _ := must(t, exitDone, args...)
	contains(t, stdout, "tiny against itself with objective.itc.score=cosine, in turns", "step of the other", "ratio of step times", "median of 3 turns", "graph rebuild")
	if strings.Contains(stdout, "that of the other") {
		t.Errorf("cosines with graphs: %s", stdout)
	}
	stdout, _ = must(t, exitDone, append(args, "--json")...)
	m := parseJSON(t, stdout)
	pairs := m["ratios"].([]any)
	if len(pairs) != 3 {
		t.Fatalf("got %s", stdout)
	}
	below, above := 0, 0
	for _, p := range pairs {
		if p.(float64) <= m["ratio"].(float64) {
			below++
		}
		if p.(float64) >= m["ratio"].(float64) {
			above++
		}
	}
	if below < 2 || above < 2 || m["ratio_lower_quartile"].(float64) > m["ratio"].(float64) || m["ratio_higher_quartile"].(float64) < m["ratio"].(float64) {
		t.Errorf("ratio %v of %v", m["ratio"], pairs)
	}
	for _, r := range []struct {
		args []string
		want string
	}{
		{[]string{"--against", "compute.threads=1"}, "no compute key can differ"},
		{[]string{"--against", "queue.sise=8"}, "did you mean queue.size?"},
		{[]string{"--against", "queue.size=128", "--vary", "batch=4,8"}, "goes with neither --compare nor --vary"},
	} {
		code, _, stderr := trainer(t, append([]string{"bench", "--config", tiny, "--steps", "1"}, r.args...)...)
		if code == exitDone || !strings.Contains(stderr, r.want) {
			t.Errorf("%v: code %d, %s", r.args, code, stderr)
		}
	}
}

func TestGraphCost(t *testing.T) {
	for _, r := range []struct {
		cost graphCost
		ms   float64
		text string
	}{
		{graphCost{First: 2, Each: 1.5, InStep: 1.5, Period: 100}, 15, "1.500 s each (the first 2.000 s), every 100 steps"},
		{graphCost{First: 2, Each: 3, InStep: .25, Period: 50, Lag: 20}, 5, "3.000 s each (the first 2.000 s), every 50 steps; beside 20 steps, of which 0.250 s within"},
	} {
		if got := r.cost.stepMS(); math.Abs(got-r.ms) > 1e-9 {
			t.Errorf("%+v: %v ms a step, want %v", r.cost, got, r.ms)
		}
		if got := strings.TrimSpace(r.cost.String()); got != r.text {
			t.Errorf("%q, want %q", got, r.text)
		}
	}
}
