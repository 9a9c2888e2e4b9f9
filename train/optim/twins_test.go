package optim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// twinRuns returns twins that begin and end inside segments, at their ends, in the gap
// between them, and hold whole segments.
func twinRuns(r *rand.Rand, n int) []Twin {
	runs := []Twin{{Offset: 5}, {Offset: n/2 - 100}, {Offset: n/2 + 9}, {Offset: n - 3*chunkLen}, {Offset: n - 1}}
	for i, size := range []int{100, 104, 3*chunkLen/2 - 9, 2 * chunkLen, 1} {
		for range size {
			runs[i].Values = append(runs[i].Values, float32(r.NormFloat64()))
		}
	}
	return runs
}

// TestStepTwins wants the bits of Step and EMA, one after the other.
func TestStepTwins(t *testing.T) {
	const n = 9*chunkLen + 77
	for _, threads := range []int{1, 2, 3} {
		var params [2][]float32
		var twins [2][]Twin
		for way := range 2 {
			p, grads, segs := randomSlabs(n)
			c := hyper
			c.ClipNorm = 0.5
			e := engine(t, threads)
			o := check.Get(New(e, p, grads, segs, c))(t)
			params[way], twins[way] = p, twinRuns(rand.New(rand.NewPCG(3, 4)), n)
			check.OK(t, o.SetTwins(twins[way]))
			for step := range 3 {
				lr, mom := 1e-3*float64(step+1), 0.9+0.03*float64(step)
				norm := o.GradNorm(0.25)
				if way == 0 {
					o.StepTwins(lr, 0.25, norm, mom)
					continue
				}
				o.Step(lr, 0.25, norm)
				for _, w := range twins[way] {
					vector.EMA(w.Values, p[w.Offset:w.Offset+len(w.Values)], float32(1-mom))
				}
			}
			if o.Steps() != 3 {
				t.Errorf("got %d steps, want 3", o.Steps())
			}
		}
		for i, v := range params[1] {
			if params[0][i] != v {
				t.Fatalf("%d threads, parameter %d: got %v, want %v", threads, i, params[0][i], v)
			}
		}
		for k, w := range twins[1] {
			for i, v := range w.Values {
				if twins[0][k].Values[i] != v {
					t.Fatalf("%d threads, run %d, twin %d: got %v, want %v", threads, k, i, twins[0][k].Values[i], v)
				}
			}
		}
	}
}

func TestSetTwinsErrors(t *testing.T) {
	params, grads, segs := randomSlabs(100)
	o := check.Get(New(engine(t, 1), params, grads, segs, hyper))(t)
	for _, twins := range [][]Twin{
		{{Offset: -1, Values: params[:2]}},
		{{Offset: 99, Values: params[:2]}},
		{{Offset: 0, Values: params[:5]}, {Offset: 4, Values: params[:2]}},
	} {
		if err := o.SetTwins(twins); err == nil ||
			!strings.Contains(err.Error(), "overlap their predecessors or leave") {
			t.Errorf("%d runs from %d: got %v", len(twins), twins[0].Offset, err)
		}
	}
	// Setting twins again replaces the ones before.
	twin := Twin{Offset: 3, Values: make([]float32, 4)}
	for range 2 {
		check.OK(t, o.SetTwins([]Twin{twin}))
	}
	o.StepTwins(0, 1, 1, 0.75)
	for i, v := range twin.Values {
		if want := 0.25 * params[3+i]; v != want {
			t.Errorf("twin %d: got %v, want %v", i, v, want)
		}
	}
	if n := allocs.PerRun(10, func() { o.StepTwins(1e-3, 1, 1, 0.9) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkStep compares an update and the moving averages in one pass with two, over
// more parameters than the caches hold. The metrics count what must be read and
// written: 28 bytes a parameter for the update, 8 more for its twin.
func BenchmarkStep(b *testing.B) {
	const n = 12 << 20
	params, grads, segs := randomSlabs(n)
	twin := Twin{Values: make([]float32, n)}
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin"}))(b)
	defer e.Close()
	o := check.Get(New(e, params, grads, segs, hyper))(b)
	check.OK(b, o.SetTwins([]Twin{twin}))
	ema := func(_, lo, hi int) { vector.EMA(twin.Values[lo:hi], params[lo:hi], 0.005) }
	best := map[string]time.Duration{}
	for b.Loop() {
		for name, f := range map[string]func(){
			"step":       func() { o.Step(1e-4, 1, 1) },
			"two-passes": func() { o.Step(1e-4, 1, 1); e.For(n, 1<<15, ema) },
			"one-pass":   func() { o.StepTwins(1e-4, 1, 1, 0.995) },
		} {
			start := time.Now()
			f()
			if d := time.Since(start); best[name] == 0 || d < best[name] {
				best[name] = d
			}
		}
	}
	b.ReportMetric(28*n/best["step"].Seconds()/1e9, "step-GB/s")
	b.ReportMetric(36*n/best["one-pass"].Seconds()/1e9, "one-pass-GB/s")
	b.ReportMetric(40*n/best["two-passes"].Seconds()/1e9, "two-passes-GB/s")
	b.ReportMetric(float64(best["two-passes"])/float64(best["one-pass"]), "ratio")
}
