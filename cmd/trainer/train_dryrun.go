package main

import (
	"fmt"
	"io"
	"time"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/schedule"
)

// printPlan writes the outcome of a dry run for a person.
func printPlan(w io.Writer, p run.Plan) {
	graphs := ""
	if p.Graphs {
		graphs = " with graphs"
	}
	for _, s := range p.Shapes {
		fmt.Fprintf(w, "  %-52s %v\n", s...)
	}
	fmt.Fprintf(w, "\n%d parameters, %d trained, vocabulary %d\n", p.Parameters, p.Trainable, p.Vocabulary)
	fmt.Fprintf(w, "memory: %.1f MB parameters with gradients, moments and twins, %.1f MB queues%s, ", p.ParametersMB, p.QueueMB, graphs)
	if p.ConnectorMB > 0 {
		fmt.Fprintf(w, "%.1f MB connector, ", p.ConnectorMB)
	}
	if p.RoundedMB > 0 {
		fmt.Fprintf(w, "%.1f MB weights in bfloat16, ", p.RoundedMB)
	}
	if p.PlansMB > 0 {
		fmt.Fprintf(w, "%.1f MB transport plans, ", p.PlansMB)
	}
	if p.FeaturesMB > 0 {
		fmt.Fprintf(w, "%.1f MB features of micro-batches, ", p.FeaturesMB)
	}
	fmt.Fprintf(w, "%.1f MB planned buffers\n", p.BuffersMB)
	if p.DeviceMB > 0 {
		fmt.Fprintf(w, "memory of the device: %.1f MB at most in these steps, of %.1f MB that this program can have; evaluations take some more\n", p.DeviceMB, p.DeviceFreeMB)
	}
	if p.Processes > 0 {
		fmt.Fprintf(w, "%d processes with %s of each batch and this memory each, %.1f MB together\n", p.Processes, words.Count(p.RankRows, "row"), float64(p.Processes)*p.MemoryMB())
	}
	fmt.Fprintf(w, "%d nodes a step, %.3f s a step with %s", p.Nodes, p.StepSeconds, p.Engine)
	if p.Steps > 0 {
		fmt.Fprintf(w, ", about %s for %s of %s", schedule.Seconds(p.RunSeconds).Round(time.Second), words.Count(p.Steps, "step"), words.Count(p.Samples, "sample"))
	}
	fmt.Fprintln(w)
}
