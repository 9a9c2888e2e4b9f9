package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train"
)

// growth is what the heap may grow by in a soak, in bytes, on top of what the samples leave open:
// a hundredth of what a run of this size holds. The Go runtime itself keeps some 400 bytes for
// each goroutine of the moment with the most of them, and that moment may come late.
const growth = 128 << 10

// samples is how often the memory is looked at, at most.
const samples = 240

// soak trains in this process for the time asked for, with all saves, evaluations and rebuilds
// of the configuration, and fits a line to the heap after a collection.
func (c *campaign) soak() error {
	cfg, err := config.Load(c.config, []string{
		"train.max_steps=0", fmt.Sprintf("train.max_minutes=%v", c.length.Minutes()), "schedule.kind=constant",
		"run.out=" + filepath.Join(c.dir, "run"),
	})
	if err != nil {
		return err
	}
	w := watch{Reporter: console.Lines(nil), every: max(c.length/samples, 50*time.Millisecond), from: c.length / 5}
	for _, s := range []*[]float64{&w.hours, &w.heap, &w.resident} {
		*s = make([]float64, 0, samples) // or the watch would be seen to grow
	}
	ctx := context.Background()
	r, err := run.New(ctx, cfg, run.Options{Reporter: &w, Several: true})
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := r.Train(ctx); err != nil {
		return err
	}
	heap, herr := w.slope(w.heap)
	resident, rerr := w.slope(w.resident)
	c.say("%d steps in %v, %d samples from %v on:", w.steps, c.length, len(w.hours), w.from)
	c.say("heap after a collection: %.2f MiB at the end, grows by %+.3f +- %.3f MiB an hour", last(w.heap)/(1<<20),
		heap/(1<<20), herr/(1<<20))
	c.say("resident: %.1f MiB at the end, grows by %+.2f +- %.2f MiB an hour", last(w.resident)/(1<<20),
		resident/(1<<20), rerr/(1<<20))
	if len(w.hours) < 10 {
		return fmt.Errorf("%d samples are too few: give it more time with -for", len(w.hours))
	}
	if grown := (heap - 3*herr) * (last(w.hours) - w.hours[0]); grown > growth {
		return fmt.Errorf("the heap grew by at least %.0f KiB", grown/(1<<10))
	}
	return nil
}

// watch is a Reporter that looks at the memory.
type watch struct {
	console.Reporter
	every, from time.Duration // between samples; what comes before from is not one

	next                  time.Duration
	steps                 int
	hours, heap, resident []float64 // samples: time, bytes, bytes
}

// Steps implements run.Reporter.
func (w *watch) Steps(int, int, time.Duration) train.Hook {
	return train.Hook{Name: "memory", Stage: train.StageLog, After: func(_ context.Context, e *train.Event) error {
		w.steps = e.Step
		if e.Elapsed < max(w.from, w.next) {
			return nil
		}
		w.next = e.Elapsed + w.every
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.hours = append(w.hours, e.Elapsed.Hours())
		w.heap = append(w.heap, float64(m.HeapAlloc))
		w.resident = append(w.resident, float64(memory.Resident()))
		return nil
	}}
}

// slope is the growth of bytes in an hour by least squares, with its standard error.
func (w *watch) slope(bytes []float64) (slope, stderr float64) {
	a, b := stat.LinearRegression(w.hours, bytes, nil, false)
	var rest, spread float64
	mean := stat.Mean(w.hours, nil)
	for i, x := range w.hours {
		rest += math.Pow(bytes[i]-a-b*x, 2)
		spread += math.Pow(x-mean, 2)
	}
	return b, math.Sqrt(rest / float64(len(w.hours)-2) / spread)
}

// last returns the last of the numbers, or 0.
func last(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return x[len(x)-1]
}
