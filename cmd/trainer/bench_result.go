package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// benchmark is what bench reports of one configuration.
type benchmark struct {
	Config     string      `json:"config"`
	System     string      `json:"system,omitempty"`
	Precision  string      `json:"precision,omitempty"`
	Score      string      `json:"score,omitempty"` // of the contrast
	Engine     string      `json:"engine"`
	Threads    int         `json:"threads"`
	Parameters int         `json:"parameters"`
	Batch      int         `json:"batch"`
	Nodes      int         `json:"nodes"`
	Steps      int         `json:"steps"`
	StepMS     float64     `json:"step_ms"` // median, and the share of a step in the cost of rebuilding graphs
	Samples    float64     `json:"samples_per_second"`
	GFLOP      float64     `json:"gflop_per_step"`
	GFLOPS     float64     `json:"gflops"`
	Peak       float64     `json:"gemm_peak_gflops"`                // in the precision of the run
	PeakFP32   float64     `json:"gemm_peak_fp32_gflops,omitempty"` // if that is another one
	Share      float64     `json:"share_of_peak"`
	Outside    float64     `json:"share_outside_kernels"`
	Allocs     float64     `json:"allocations_per_step"`
	HeapGrowth int64       `json:"heap_growth_bytes"`        // over the measured steps
	PeakMB     float64     `json:"peak_memory_mb,omitempty"` // largest resident size; 0: not known
	BufferMB   float64     `json:"buffers_mb"`               // planned for the results of a step
	StateMB    float64     `json:"state_mb,omitempty"`       // parameters, gradients, moments, twins, queue
	HeapMB     float64     `json:"heap_mb"`                  // of Go
	First      *startup    `json:"first_step,omitempty"`     // nil where the process did something else before
	Graphs     *graphCost  `json:"graph_rebuild,omitempty"`  // nil without graphs over the queue
	Phases     []benchTime `json:"phases"`
	Ops        []benchTime `json:"ops"`
}

// startup is the place of the first step in time, in seconds from the start of the
// process.
type startup struct {
	Begin float64 `json:"begin_seconds"`
	End   float64 `json:"end_seconds"`
}

// benchTime is the time of a part of the step.
type benchTime struct {
	Name   string  `json:"name"`
	Nodes  int     `json:"nodes,omitempty"`
	MS     float64 `json:"ms"` // per step
	Share  float64 `json:"share"`
	GFLOPS float64 `json:"gflops,omitempty"`
}

// print writes the result for a person.
func (r benchmark) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d parameters, batch %d, %d nodes, %s\n\n", r.Config, r.Parameters, r.Batch, r.Nodes, r.Engine)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("step", "%10.1f ms (median of %d)", r.StepMS, r.Steps)
	if r.Graphs != nil {
		line("graph rebuild", "%s: %.1f ms of the step", r.Graphs, r.Graphs.stepMS())
	}
	line("samples per second", "%10.1f", r.Samples)
	line("matrix products", "%10.1f GFLOP a step, %.1f GFLOP/s", r.GFLOP, r.GFLOPS)
	line("GEMM peak", "%10.1f GFLOP/s (%d x %d x %d)", r.Peak, peakM, peakN, peakK)
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
	line("planned memory", "%10.1f MB: %.1f of parameters, gradients, moments, twins and queue, %.1f of results", r.StateMB+r.BufferMB, r.StateMB, r.BufferMB)
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

// known formats a number, 0 as nothing.
func known(v float64, format string) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}
