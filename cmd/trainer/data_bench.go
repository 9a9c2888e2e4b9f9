package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/internal/words"
)

func newDataBenchCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var o bench.DataOptions
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast samples are made, and whether training waits for them",
		Long: `bench makes training samples as a run would. It shows how many per second, with one worker and
more, and which stage takes the time: reading, decoding, resizing or augmenting.

--steps N also trains, in turn on these samples and on samples that cost nothing. It shows the
share of a step spent waiting for data, and how much the workers slow the step down by taking
processor time. If both are below 5 %, faster data would change hardly anything.

If data is the bottleneck: raise data.workers if processors are idle; set data.cache = "memory" or
"disk" if reading and decoding dominate (and shrink large files, once on disk or with
data.cache_size); lower data.randaugment_ops if augmenting does. data.prefetch only helps against
uneven samples.

With a cache, the first pass fills it: --samples N repeats the first N samples and shows the speed
of later passes.`,
		Example: `  trainer data bench --config configs/flickr8k.toml --set data.root=/data/flickr8k
  trainer data bench --config my.toml --steps 10
  trainer data bench --config my.toml --set data.cache=memory --samples 500 --json
  trainer data bench --config my.toml --workers 1,2,4,8 --seconds 5`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkDataBench(o); err != nil {
				return err
			}
			cfg, err := flags.load(c)
			if err != nil {
				return err
			}
			r, err := shown(c, out, func(ctx context.Context,
				progress func(phase string, done, of int)) (*bench.DataReport, error) {
				o.Progress = progress
				return bench.Data(ctx, cfg, o)
			})
			if err != nil {
				return err
			}
			if out.json {
				return printJSON(c.OutOrStdout(), r)
			}
			return printDataReport(c.OutOrStdout(), r)
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().Float64Var(&o.Seconds, "seconds", 2, "time of each measurement without steps")
	c.Flags().IntSliceVar(&o.Workers, "workers", nil,
		"numbers of workers to try; default: 1, 2, 4 ... up to the processors, and data.workers")
	c.Flags().IntVar(&o.Samples, "samples", 0, "take the first `N` samples again and again; 0: all")
	c.Flags().IntVar(&o.Steps, "steps", 0, "also train for N steps on real and `N` on free samples")
	return c
}

// checkDataBench refuses flags that measure nothing.
func checkDataBench(o bench.DataOptions) error {
	if !(o.Seconds > 0 && o.Seconds <= mostSeconds) || o.Samples < 0 || o.Steps < 0 {
		return usageError{fmt.Errorf("--seconds must be > 0 and at most %g, --samples and --steps >= 0 (got %g, %d and %d)", mostSeconds, o.Seconds, o.Samples, o.Steps)}
	}
	for _, w := range o.Workers {
		if w < 1 {
			return usageError{fmt.Errorf("--workers must be > 0 (got %d)", w)}
		}
	}
	return nil
}

// printDataReport writes the report for a person.
func printDataReport(w io.Writer, r *bench.DataReport) error {
	images := ""
	if r.Pixels > 0 {
		images = fmt.Sprintf(", %d pixels an image, made into %dx%d", r.Pixels, r.ImageSize, r.ImageSize)
	}
	fmt.Fprintf(w, "%s: %s%s; batch %d, cache %s, %s\n\n", r.Config, r.Kind, images, r.BatchSize, r.Cache,
		words.Count(r.Processors, "processor"))
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
		fmt.Fprintf(w, "\ncache: %.0f %% of the images came from it; it holds %.2f GB%s\n",
			100*float64(c.Hits)/float64(c.Hits+c.Misses), float64(c.Bytes)/1e9, full)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Verdict)
	return err
}
