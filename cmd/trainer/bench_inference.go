package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/bench"
)

// mostSeconds bounds --seconds, a day: beyond some centuries a time.Duration is another one.
const mostSeconds = 86400.0

// inferenceFlags are the flags of bench --inference.
type inferenceFlags struct {
	on         bool
	sides      []string
	batches    []int
	precisions []string
	seconds    float64
}

func (f *inferenceFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "inference", false, "measure encoding of images and texts instead of training steps")
	c.Flags().StringSliceVar(&f.sides, "sides", nil,
		"with --inference: images, texts or both (default: those that the model has; `list`)")
	c.Flags().IntSliceVar(&f.batches, "batches", []int{1, 8, 32}, "with --inference: rows of a batch (`list`)")
	c.Flags().StringSliceVar(&f.precisions, "precisions", nil,
		"with --inference: fp32, bf16, int8 or several (default: compute.precision; `list`)")
	c.Flags().Float64Var(&f.seconds, "seconds", 2, "with --inference: how long each encoding is measured")
}

// check refuses flags that do not go together.
func (f *inferenceFlags) check(c *cobra.Command) error {
	if !f.on {
		for _, name := range []string{"sides", "batches", "precisions", "seconds"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s is of --inference", name)
			}
		}
		return nil
	}
	for _, name := range []string{"steps", "warmup", "compare", "fail-below", "ranks", "vary", "against", "all",
		"table"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--inference does not go with --%s: it measures encoding by one model alone", name)
		}
	}
	for _, n := range f.batches {
		if n < 1 {
			return fmt.Errorf("--batches must be > 0 (got %d)", n)
		}
	}
	switch {
	case len(f.batches) == 0:
		return errors.New("--batches must name at least one size")
	case !(f.seconds >= 0):
		return fmt.Errorf("--seconds must be >= 0 (got %g)", f.seconds)
	case f.seconds > mostSeconds:
		return fmt.Errorf("--seconds must be at most %g (got %g)", mostSeconds, f.seconds)
	case groupOf(c).Size() > 1:
		return errors.New("--inference is measured by one process")
	}
	return nil
}

// inference measures encoding, in one precision after the other.
func (f *benchFlags) inference(c *cobra.Command) error {
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	o := bench.InferenceOptions{Sides: f.encoding.sides, Batches: f.encoding.batches, Peak: peakTime,
		Progress: bar.show, Time: time.Duration(f.encoding.seconds * float64(time.Second))}
	precisions := f.encoding.precisions
	if len(precisions) == 0 {
		precisions = []string{""}
	}
	var results []bench.Inference
	for _, p := range precisions {
		var sets []string
		if p != "" {
			sets = []string{"compute.precision=" + p}
		}
		cfg, err := f.config.loadToUse(c, sets...)
		if err != nil {
			return err
		}
		r, err := bench.MeasureInference(c.Context(), cfg, o)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	bar.done()
	result := map[string]any{"inference": results}
	kept := f.keep(c, result)
	if f.output.json {
		return errors.Join(printJSON(c.OutOrStdout(), result), kept)
	}
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		printInference(c.OutOrStdout(), r, results[0])
	}
	return kept
}

// printInference writes what encoding costs for a person, beside what it costs in the first precision.
func printInference(w io.Writer, r, first bench.Inference) {
	fmt.Fprintf(w, "%s: encoding in %s, %d parameters, %s\n\n", r.Config, r.Precision, r.Parameters, r.Engine)
	peakM, peakN, peakK := bench.PeakSize(r.Device)
	fmt.Fprintf(w, "  GEMM peak %.1f GFLOP/s (%d x %d x %d)", r.Peak, peakM, peakN, peakK)
	if r.PeakMB > 0 {
		fmt.Fprintf(w, ", peak memory %.1f MB of the process", r.PeakMB)
	}
	if r.Device != nil {
		fmt.Fprintf(w, ", %.1f MB of the device", r.Device.MemoryMB)
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "side\tbatch\tread\tper second\tx %s\tbatch ms\t95 %%\tGFLOP\tGFLOP/s\tof peak\tbuffers MB\t\n",
		first.Precision)
	for i, e := range r.Encodings {
		read := "features"
		if e.States {
			read = "states"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f %%\t%.0f\t\n", e.Side, e.Batch, read,
			e.PerSecond, e.PerSecond/first.Encodings[i].PerSecond, e.MedianMS, e.P95MS, e.GFLOPRow, e.GFLOPS, 100*e.Share, e.BufferMB)
	}
	t.Flush()
	for i, e := range r.Encodings { // the largest batch of features of each side
		last := true
		for _, after := range r.Encodings[i+1:] {
			last = last && (after.Side != e.Side || after.States)
		}
		if e.States || !last {
			continue
		}
		fmt.Fprintf(w, "\n%s, %d at a time\n\n", e.Side, e.Batch)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(t, "op\tms\tshare\tnodes\tGFLOP/s\t\n")
		for _, o := range e.Ops {
			fmt.Fprintf(t, "%s\t%.2f\t%.1f %%\t%d\t%s\t\n", o.Name, o.MS, 100*o.Share, o.Nodes, known(o.GFLOPS, "%.1f"))
		}
		t.Flush()
	}
}
