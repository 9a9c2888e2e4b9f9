package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/words"
)

// Shares below which data does not matter: of the step, waiting for it; of the
// processors' time, making it.
const (
	littleWait = 0.05
	littleWork = 0.05
)

// verdict says in a sentence what the limit is and what would move it.
func (r *dataBenchReport) verdict(cfg config.Config) string {
	most := slices.MaxFunc(r.Stages, func(a, b stageShare) int { return cmp.Compare(a.MS, b.MS) })
	best := slices.MaxFunc(r.Loader, func(a, b loaderSpeed) int { return cmp.Compare(a.Samples, b.Samples) })
	stage := fmt.Sprintf("%s takes %.0f %% of a sample", most.Stage, 100*most.Share)
	if r.Step == nil {
		return fmt.Sprintf("the loader makes up to %s samples/s with %s; %s", rate(best.Samples), words.Count(best.Workers, "worker"), stage)
	}
	s := r.Step
	speeds := fmt.Sprintf("the step could use %s samples/s, the loader alone makes up to %s", rate(s.Needed), rate(best.Samples))
	switch {
	case s.WaitShare >= littleWait:
		return fmt.Sprintf("waiting %.1f %% of the time: data is the limit (%s); %s: %s",
			100*s.WaitShare, speeds, stage, r.advice(cfg, most.Stage, best.Workers))
	case s.Processor >= littleWork:
		// More workers would not help: they and the step share the processors.
		return fmt.Sprintf("waiting %.1f %% of the time, but making the samples takes %.1f %% of the processors' time from the step (%s); %s: %s",
			100*s.WaitShare, 100*s.Processor, speeds, stage, r.advice(cfg, most.Stage, 0))
	}
	return fmt.Sprintf("waiting %.1f %% of the time: the step is the limit (%s)", 100*s.WaitShare, speeds)
}

// rate prints samples per second.
func rate(v float64) string {
	if v < 20 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// advice says what to try when data is the limit.
func (r *dataBenchReport) advice(cfg config.Config, stage string, bestWorkers int) string {
	workers := cfg.Data.Workers
	if workers == 0 {
		workers = r.Processors
	}
	switch {
	case workers < bestWorkers:
		return fmt.Sprintf("set data.workers = %d", bestWorkers)
	case stage == "read" || stage == "decode" || stage == "colour":
		if r.Cache != "none" {
			return "the cache is not filled yet, or too small: see data.cache_max_gb, and --samples for a filled one"
		}
		return fmt.Sprintf("set data.cache = \"memory\" or \"disk\" (all images take %.1f GB, less with data.cache_size)", r.CacheGB)
	case stage == "cache":
		return "set data.cache = \"memory\", or a smaller data.cache_size"
	case stage == "resize":
		return "shrink the images, by data.cache with data.cache_size or on disk"
	case stage == "augment":
		return "lower data.randaugment_ops"
	}
	return "use more processors"
}

// print writes the report for a person.
func (r *dataBenchReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %d pixels an image, made into %dx%d; batch %d, cache %s, %s\n\n", r.Config, r.Kind, r.Pixels,
		r.ImageSize, r.ImageSize, r.BatchSize, r.Cache, words.Count(r.Processors, "processor"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "stage\tms a sample\tshare\t\n")
	for _, s := range r.Stages {
		fmt.Fprintf(t, "%s\t%.3f\t%.1f %%\t\n", s.Stage, s.MS, 100*s.Share)
	}
	fmt.Fprintf(t, "together\t%.3f\t\t\n \t\t\t\nworkers\tsamples/s\t\t\n", r.SampleMS)
	for _, l := range r.Loader {
		fmt.Fprintf(t, "%d\t%.0f\t\t\n", l.Workers, l.Samples)
	}
	if s := r.Step; s != nil {
		fmt.Fprintf(t, " \t\t\t\nstep\tms\t\t\n")
		fmt.Fprintf(t, "on these samples\t%.1f\t\t\n", s.StepMS)
		fmt.Fprintf(t, "of it waiting\t%.1f\t%.1f %%\t\n", s.WaitMS, 100*s.WaitShare)
		fmt.Fprintf(t, "on free samples\t%.1f\t\t\n", s.FreeMS)
		fmt.Fprintf(t, "slower than that without waiting\t\t%.1f %%\t\n", 100*s.SlowDown)
		fmt.Fprintf(t, "processor time for the samples\t\t%.1f %%\t\n", 100*s.Processor)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Bad > 0 {
		fmt.Fprintf(w, "\n%d of %d samples are bad: trainer data check lists what is wrong\n", r.Bad, r.Samples+r.Bad)
	}
	if c := r.CacheStats; c.Hits+c.Misses > 0 {
		full := ""
		if c.Full {
			full = ", full"
		}
		fmt.Fprintf(w, "\ncache: %.0f %% of the images came from it; it holds %.2f GB%s\n", 100*float64(c.Hits)/float64(c.Hits+c.Misses), float64(c.Bytes)/1e9, full)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Verdict)
	return err
}
