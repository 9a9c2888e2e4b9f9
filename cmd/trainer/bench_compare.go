package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// comparison sets a result beside an earlier one.
type comparison struct {
	File     string       `json:"file"`
	Warnings []string     `json:"warnings"` // why the two may not be comparable
	Rows     []comparedAt `json:"rows"`
}

// comparedAt is one number of both results.
type comparedAt struct {
	Group  string  `json:"group"` // step, phase or op
	Name   string  `json:"name"`
	Before float64 `json:"before"` // 0: not in the earlier result
	Now    float64 `json:"now"`    // 0: not in this one
	Ratio  float64 `json:"ratio"`  // now / before; 0 where one of the two is missing
}

// readBenchmark reads an earlier result.
func readBenchmark(path string) (benchmark, error) {
	var r benchmark
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("--compare: %w", err)
	}
	const hint = "write one with trainer bench --save FILE"
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("--compare: %s is no bench result: %w: %s", path, err, hint)
	}
	if !(r.StepMS > 0) || !(r.Samples > 0) || len(r.Phases) == 0 {
		return r, fmt.Errorf("--compare: %s is no result of one configuration: it lacks step_ms, samples_per_second or phases: %s", path, hint)
	}
	return r, nil
}

// compare sets now beside before, which was read from file.
func compare(file string, before, now benchmark) comparison {
	c := comparison{File: file, Warnings: []string{}}
	for _, k := range []struct {
		what        string
		before, now any
	}{
		{"config", before.Config, now.Config},
		{"system", before.System, now.System},
		{"score", before.Score, now.Score},
		{"precision", before.Precision, now.Precision},
		{"engine", before.Engine, now.Engine},
		{"threads", before.Threads, now.Threads},
		{"batch", before.Batch, now.Batch},
		{"parameters", before.Parameters, now.Parameters},
	} {
		// Results of older versions do not say everything.
		if k.before != k.now && k.before != "" {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s differs: %v in %s, %v now", k.what, k.before, file, k.now))
		}
	}
	add := func(group, name string, before, now float64) {
		row := comparedAt{Group: group, Name: name, Before: before, Now: now}
		if before > 0 && now > 0 {
			row.Ratio = now / before
		}
		c.Rows = append(c.Rows, row)
	}
	add("step", "step ms", before.StepMS, now.StepMS)
	add("step", "samples per second", before.Samples, now.Samples)
	add("step", "GFLOP a step", before.GFLOP, now.GFLOP)
	add("step", "GFLOP/s", before.GFLOPS, now.GFLOPS)
	add("step", "GEMM peak GFLOP/s", before.Peak, now.Peak)
	add("step", "share of the peak %", 100*before.Share, 100*now.Share)
	add("step", "peak memory MB", before.PeakMB, now.PeakMB)
	add("step", "planned results MB", before.BufferMB, now.BufferMB)
	add("step", "allocations", before.Allocs, now.Allocs)
	times := func(group string, before, now []benchTime) {
		old := map[string]float64{}
		for _, t := range before {
			old[t.Name] = t.MS
		}
		for _, t := range now {
			add(group, t.Name, old[t.Name], t.MS)
			delete(old, t.Name)
		}
		for _, t := range before { // what there is no more
			if ms, gone := old[t.Name]; gone {
				add(group, t.Name, ms, 0)
			}
		}
	}
	if before.Graphs != nil || now.Graphs != nil {
		each := func(g *graphCost) float64 {
			if g == nil {
				return 0
			}
			return 1e3 * g.Each
		}
		add("step", "one graph rebuild ms", each(before.Graphs), each(now.Graphs))
	}
	times("phase", before.Phases, now.Phases)
	times("op", before.Ops, now.Ops)
	return c
}

// print writes the comparison for a person.
func (c comparison) print(w io.Writer) {
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
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", r.Name, known(r.Before, "%.1f"), known(r.Now, "%.1f"), known(r.Ratio, "%.2f"))
	}
	t.Flush()
	fmt.Fprintf(w, "\na step takes %s of the time", known(c.ratio("step ms"), "%.3f"))
	if m := c.ratio("peak memory MB"); m > 0 {
		fmt.Fprintf(w, " and %.3f of the peak memory", m)
	}
	fmt.Fprintln(w, " that it did before")
}

// speed is the ratio of samples per second, now to before.
func (c comparison) speed() float64 { return c.ratio("samples per second") }

// ratio is the ratio of a number of the step, now to before.
func (c comparison) ratio(name string) float64 {
	for _, r := range c.Rows {
		if r.Group == "step" && r.Name == name {
			return r.Ratio
		}
	}
	return 0
}
