package bench

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// geodesicSets make the contrast of tiny geodesic.
var geodesicSets = []string{"objective.itc.score=geodesic", "objective.geodesic.layers=4,8", "objective.geodesic.period_steps=20"}

// TestGraphs checks that graphs exist from the first step on, that no rebuild is
// within a measured step, and that the step is charged its share.
func TestGraphs(t *testing.T) {
	for _, lag := range []string{"0", "3"} {
		cfg := check.Get(config.Load(tiny, append([]string{"objective.geodesic.lag_steps=" + lag}, geodesicSets...)))(t)
		var shown []string
		r := check.Get(Measure(t.Context(), cfg, Options{Steps: 2, Warmup: 1, Peak: time.Millisecond,
			Progress: func(phase string, done, total int) {
				if done == total {
					shown = append(shown, phase)
				}
			}}))(t)
		if got := strings.Join(shown, ", "); got != "first graph, warm-up, graph rebuild, measuring" {
			t.Errorf("lag %s: progress %s", lag, got)
		}
		g := r.Graphs
		if g == nil || g.First <= 0 || g.Each <= 0 || g.InStep <= 0 || g.InStep > g.Each || g.Period != 20 {
			t.Fatalf("lag %s: graphs cost %+v", lag, g)
		}
		var sum float64
		var rebuild Time
		for _, p := range r.Phases {
			sum += p.Share
			if p.Name == "graph rebuild" {
				rebuild = p
			}
		}
		if want := 1e3 * g.InStep / 20; !(math.Abs(rebuild.MS-want) <= 1e-3*want+1e-5) || r.StepMS <= want {
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

// TestGraphsAreBuilt checks that systems of two and of one modality have a graph
// before their first step, and when it was built last.
func TestGraphsAreBuilt(t *testing.T) {
	for _, system := range []string{"albef", "moco"} {
		sets := append([]string{"model.system=" + system}, geodesicSets...)
		if system == "moco" {
			sets = append(sets, "objective.itm.weight=0", "objective.mlm.weight=0", "objective.itc.in_batch_weight=0", "objective.distill.alpha=0", "data.views=2", "eval.rerank_top=0")
		}
		cfg, w := configured(t, sets...)
		b := &bencher{cfg: cfg, work: w}
		if w.Graphs() == nil || w.Graphs().Begun >= 0 {
			t.Fatalf("%s: graphs %+v before the first is built", system, w.Graphs())
		}
		check.OK(t, b.firstGraphs())
		if w.Graphs().Image.Used == 0 || w.Graphs().Begun != cfg.Queue.StartSteps {
			t.Errorf("%s: %d centres, begun at %d", system, w.Graphs().Image.Used, w.Graphs().Begun)
		}
		check.OK(t, b.rebuildGraphs())
		if want := cfg.Queue.StartSteps + rebuilds*20; w.Graphs().Begun != want {
			t.Errorf("%s: the last rebuild at %d, want %d", system, w.Graphs().Begun, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestGraphCost(t *testing.T) {
	for _, r := range []struct {
		cost GraphCost
		ms   float64
		text string
	}{
		{GraphCost{First: 2, Each: 1.5, InStep: 1.5, Period: 100}, 15, "1.500 s each (the first 2.000 s), every 100 steps"},
		{GraphCost{First: 2, Each: 3, InStep: .25, Period: 50, Lag: 20}, 5, "3.000 s each (the first 2.000 s), every 50 steps; beside 20 steps, of which 0.250 s within"},
	} {
		if got := r.cost.StepMS(); !(math.Abs(got-r.ms) <= 1e-9) {
			t.Errorf("%+v: %v ms a step, want %v", r.cost, got, r.ms)
		}
		if got := strings.TrimSpace(r.cost.String()); got != r.text {
			t.Errorf("%q, want %q", got, r.text)
		}
	}
}
