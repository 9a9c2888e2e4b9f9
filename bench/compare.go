package bench

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/geoalign/geoalign/internal/files"
)

// Comparison sets a result beside an earlier one.
type Comparison struct {
	File     string     `json:"file"`
	Warnings []string   `json:"warnings"` // why the two may not be comparable
	Rows     []Compared `json:"rows"`
}

// Compared is one number of both results.
type Compared struct {
	Group  string  `json:"group"` // step, phase or op
	Name   string  `json:"name"`
	Before float64 `json:"before"` // 0: not in the earlier result
	Now    float64 `json:"now"`    // 0: not in this one
	Ratio  float64 `json:"ratio"`  // now / before; 0 where one of the two is missing
}

// Read reads an earlier result.
func Read(path string) (Result, error) {
	var r Result
	text, err := files.Read(path, files.MaxRecord)
	if err != nil {
		return r, fmt.Errorf("--compare: %w", err)
	}
	const hint = "write one with trainer bench --save FILE"
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("--compare: %s is not a bench result: %w: %s", path, err, hint)
	}
	if !(r.StepMS > 0) || !(r.Samples > 0) || len(r.Phases) == 0 {
		return r, fmt.Errorf("--compare: %s is not a result of one configuration: it lacks step_ms, samples_per_second or phases: %s", path, hint)
	}
	return r, nil
}

// Compare sets now beside before, which was read from file.
func Compare(file string, before, now Result) Comparison {
	c := Comparison{File: file, Warnings: []string{}}
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
		if k.before != k.now && !reflect.ValueOf(k.before).IsZero() {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s differs: %v in %s, %v now", k.what, k.before, file, k.now))
		}
	}
	add := func(group, name string, before, now float64) {
		row := Compared{Group: group, Name: name, Before: before, Now: now}
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
	times := func(group string, before, now []Time) {
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
		each := func(g *GraphCost) float64 {
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

// Speed is the ratio of samples per second, now to before.
func (c Comparison) Speed() float64 { return c.Ratio("samples per second") }

// Ratio is the ratio of a number of the step, now to before.
func (c Comparison) Ratio(name string) float64 {
	for _, r := range c.Rows {
		if r.Group == "step" && r.Name == name {
			return r.Ratio
		}
	}
	return 0
}
