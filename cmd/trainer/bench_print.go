package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/geoalign/geoalign/bench"
	"github.com/geoalign/geoalign/internal/words"
)

// printDuel writes the result for a person.
func printDuel(w io.Writer, d bench.Duel) {
	fmt.Fprintf(w, "%s against itself with %s, in turns, %s\n\n", d.Config, strings.Join(d.Against, ", "), d.Engine)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("step", "%10.1f ms (median of %d)", d.StepMS, d.Steps)
	line("step of the other", "%10.1f ms", d.OtherMS)
	if d.Graphs != nil {
		line("graph rebuild", "%s: %.1f ms of the step", d.Graphs, d.Graphs.StepMS())
	}
	if d.Other != nil {
		line("that of the other", "%s: %.1f ms of the step", d.Other, d.Other.StepMS())
	}
	line("ratio of step times", "%10.3f (median of %d turns; half of them lie in %.3f to %.3f)", d.Ratio, d.Steps,
		d.Low, d.High)
	line("of the fastest steps", "%10.3f", d.BestRatio)
}

// printComparison writes the comparison for a person.
func printComparison(w io.Writer, c bench.Comparison) {
	fmt.Fprintf(w, "beside %s (times in ms a step):\n\n", c.File)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	group := ""
	for _, r := range c.Rows {
		if r.Group != group {
			if group != "" {
				fmt.Fprint(t, "\t\t\t\t\n")
			}
			group = r.Group
			fmt.Fprintf(t, "%s\tbefore\tnow\tnow/before\t\n", group)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", r.Name, known(r.Before, "%.1f"), known(r.Now, "%.1f"),
			known(r.Ratio, "%.2f"))
	}
	t.Flush()
	fmt.Fprintf(w, "\na step takes %s of the time", known(c.Ratio("step ms"), "%.3f"))
	if m := c.Ratio("peak memory MB"); m > 0 {
		fmt.Fprintf(w, " and %.3f of the peak memory", m)
	}
	fmt.Fprintln(w, " that it did before")
}

// printResult writes the result for a person.
func printResult(w io.Writer, r bench.Result) {
	trained := ""
	if r.Trained > 0 && r.Trained < r.Parameters {
		trained = fmt.Sprintf(", %d trained", r.Trained)
	}
	fmt.Fprintf(w, "%s: %d parameters%s, batch %d, %d nodes, %s\n\n", r.Config, r.Parameters, trained, r.Batch, r.Nodes,
		r.Engine)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("step", "%10.1f ms (median of %d)", r.StepMS, r.Steps)
	if r.Graphs != nil {
		line("graph rebuild", "%s: %.1f ms of the step", r.Graphs, r.Graphs.StepMS())
	}
	line("samples per second", "%10.1f", r.Samples)
	line("matrix products", "%10.1f GFLOP a step, %.1f GFLOP/s", r.GFLOP, r.GFLOPS)
	m, n, k := bench.PeakSize(r.Device)
	line("GEMM peak", "%10.1f GFLOP/s (%d x %d x %d)", r.Peak, m, n, k)
	if r.PeakFP32 > 0 {
		line("GEMM peak in fp32", "%10.1f GFLOP/s", r.PeakFP32)
	}
	line("share of the peak", "%10.1f %%", 100*r.Share)
	line("time outside kernels", "%10.2f %%", 100*r.Outside)
	line("allocations per step", "%10.1f", r.Allocs)
	line("heap growth", "%10d bytes over %d steps", r.HeapGrowth, r.Steps)
	if r.PeakMB > 0 {
		line("peak memory", "%10.1f MB of the process", r.PeakMB)
	}
	line("planned memory", "%10.1f MB: %.1f of parameters, gradients, moments, momentum encoder and queue, %.1f of results beside the gradients", r.StateMB+r.BufferMB, r.StateMB, r.BufferMB)
	if d := r.Device; d != nil {
		line("memory of the device", "%8.1f MB at most", d.MemoryMB)
		for _, kind := range slices.Sorted(maps.Keys(d.OnHost)) {
			line("on the host", "%s (%s)", kind, words.Count(d.OnHost[kind], "node"))
		}
	}
	if r.Ranks != nil {
		printRanks(w, r.Ranks)
	}
	if r.First != nil {
		line("start to first step", "%10.2f s to its beginning, %.2f s to its end", r.First.Begin, r.First.End)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "phase\tms\tshare\t\n")
	for _, p := range r.Phases {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f %%\t\n", p.Name, p.MS, 100*p.Share)
	}
	fmt.Fprint(t, "\t\t\t\nop\tms\tshare\tnodes\tGFLOP/s\t\n")
	for _, o := range r.Ops {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f %%\t%d\t%s\t\n", o.Name, o.MS, 100*o.Share, o.Nodes, known(o.GFLOPS, "%.1f"))
	}
	t.Flush()
}

// printRanks writes what several processes have measured.
func printRanks(w io.Writer, r *bench.Ranks) {
	fmt.Fprintf(w, "\n%d processes with %d rows each (min, median and max of them; a step waits for the slowest)\n\n",
		r.Processes, r.Rows)
	line := func(name string, s bench.Spread, unit, note string) {
		fmt.Fprintf(w, "  %-22s %10.1f %10.1f %10.1f %s%s\n", name, s.Min, s.Median, s.Max, unit, note)
	}
	most := ""
	if !r.Measured {
		most = " at most"
	}
	line("step", r.StepMS, "ms", "")
	line("computing", r.ComputeMS, "ms", "")
	line("exchanging", r.ExchangeMS, "ms", most+", waits for slower ranks included")
	line("hidden of that", r.HiddenMS, "ms", most)
	line("waited for", r.WaitedMS, "ms", "")
	line("given", r.MB, "MB a step", "")
	line("peak memory", r.MemoryMB, "MB", "")
	fmt.Fprintln(w)
}

// known formats a number, 0 as nothing.
func known(v float64, format string) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// printTable writes the table for a person.
func printTable(w io.Writer, t bench.Table) {
	if f := t.First(); f != nil {
		fmt.Fprintf(w, "%s: what a step costs by %s, %s\n\n", f.Config, t.Vary, f.Engine)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	graphs := t.HasGraphs()
	fmt.Fprintf(tw, "%s\tstep ms\tsamples/s\tspeed-up\tGFLOP\tGFLOP/s\tof peak\tpeak MB\tplanned MB\t", t.Vary)
	if graphs {
		fmt.Fprint(tw, "graph rebuild s\t")
	}
	fmt.Fprintln(tw)
	for _, r := range t.Rows {
		b := r.Result
		if b == nil {
			fmt.Fprintf(tw, "%s\ttoo large\t\t\t\t\t\t\t\t\n", r.Value)
			continue
		}
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%s\t%.1f\t%.1f\t%.1f %%\t%s\t%.0f\t", r.Value, b.StepMS, b.Samples,
			known(r.Speed, "%.3f"), b.GFLOP, b.GFLOPS, 100*b.Share, known(b.PeakMB, "%.0f"), b.StateMB+b.BufferMB)
		if graphs {
			seconds := 0.
			if b.Graphs != nil {
				seconds = b.Graphs.Each
			}
			fmt.Fprintf(tw, "%s\t", known(seconds, "%.3f"))
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	for _, r := range t.Rows {
		if r.Error != "" {
			fmt.Fprintf(w, "%s=%s: %s\n", t.Vary, r.Value, r.Error)
		}
	}
}
