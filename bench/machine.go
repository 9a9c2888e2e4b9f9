package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/train/runlog"
)

// Machine is all that is measured of one machine: the content of a file of docs/machines.
type Machine struct {
	Name     string             `json:"name,omitempty"` // of the kind of processor, which CPUID does not tell: Zen 5
	Source   string             `json:"source"`         // where the figures come from: a command
	Date     string             `json:"date"`           // day of the measurement
	Hardware Hardware           `json:"hardware"`
	Software runlog.Environment `json:"software"`
	Complete bool               `json:"complete"` // false: it was interrupted, or some figures are not known
	Steps    []Result           `json:"steps"`
	Products []Product          `json:"products,omitempty"`
}

// Product is the speed of one matrix product on one thread.
type Product struct {
	Name   string  `json:"name"` // form and sizes, such as NT 1576x768x768
	Kernel string  `json:"kernel"`
	GFLOPS float64 `json:"gflops"`
}

// Figure is one number of a Machine, more is better. A further group of figures is a field of Machine and its lines in
// Figures: the table over machines and the comparison follow.
type Figure struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
}

// Figures are the numbers that machines are compared by.
func (m Machine) Figures() (list []Figure) {
	for _, r := range m.Steps {
		list = append(list, Figure{"training step", r.Config + " " + r.Precision, "samples/s", r.Samples})
	}
	for _, p := range m.Products {
		list = append(list, Figure{"matrix product, one thread", p.Name + " " + p.Kernel, "GFLOP/s", p.GFLOPS})
	}
	return list
}

// MeasureMachine measures steps of configurations, then the table of matrix products. With an error, such as that of
// an interruption, the machine holds what was measured before. The first configuration alone can tell
// how long a start takes.
func MeasureMachine(ctx context.Context, configs []config.Config, o Options) (m Machine, err error) {
	m = Machine{Date: time.Now().UTC().Format(time.DateOnly), Hardware: ThisMachine()}
	for _, cfg := range configs {
		name := cfg.Run.Name + " " + cfg.Compute.Precision
		each := o
		each.Progress = func(phase string, done, total int) { o.tell(name+": "+phase, done, total) }
		debug.FreeOSMemory() // what the configuration before held
		fresh := memory.ResetPeak()
		r, err := Measure(ctx, cfg, each)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		if len(m.Steps) > 0 {
			r.First = nil
			if !fresh {
				r.PeakMB = 0
			}
		} else {
			m.Software = runlog.CollectEnvironment(runlog.Setup{Threads: r.Threads, Kernels: r.Engine}, nil)
		}
		m.Steps = append(m.Steps, r)
		if o.Row != nil {
			o.Row(fmt.Sprintf("%s: %.4g samples/s", name, r.Samples))
		}
	}
	if o.Product > 0 {
		m.Products, err = measureProducts(ctx, o)
	}
	m.Complete = err == nil
	return m, err
}

// measureProducts measures the products of training steps (gemmtest.Shapes) on one thread.
func measureProducts(ctx context.Context, o Options) (list []Product, err error) {
	r := rand.New(rand.NewPCG(1, 1))
	e, err := kernel.New(kernel.Options{Threads: 1})
	if err != nil {
		return list, err
	}
	defer e.Close()
	for _, bf16 := range []bool{false, true} {
		name := kernel.Builtin
		if bf16 && !cpu.HasBF16 {
			continue
		} else if bf16 {
			name += " bf16"
		}
		for i, s := range gemmtest.Shapes {
			if err := ctx.Err(); err != nil {
				return list, err
			}
			o.tell("matrix products, "+name, i, len(gemmtest.Shapes))
			g := gemmtest.NewCase(r,
				gemmtest.Case{P: gemm.Product{TransA: s.TransA, TransB: s.TransB, M: s.M, N: s.N, K: s.K, Alpha: 1,
					BF16: bf16}, HalfA: bf16, HalfB: bf16})
			list = append(list, Product{fmt.Sprintf("%s %dx%dx%d", s.Name, s.M, s.N, s.K), name,
				kernel.MeasureProduct(e, &g.P, o.Product)})
		}
	}
	return list, nil
}

// ReadMachine reads a file that trainer bench --all has written.
func ReadMachine(path string) (m Machine, err error) {
	text, err := files.Read(path, files.MaxRecord)
	if err != nil {
		return m, err
	}
	const hint = "write one with trainer bench --all --save FILE"
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s is not a file of a machine: %w: %s", path, err, hint)
	}
	if m.Hardware.Model == "" || len(m.Steps) == 0 {
		return m, fmt.Errorf("%s is not a file of a machine: it lacks hardware or steps: %s", path, hint)
	}
	return m, nil
}

// CompareMachine sets the figures of now beside those that file holds. Another kind of machine is an error: a ratio
// would say nothing of the program.
func CompareMachine(file string, before, now Machine) (c Comparison, err error) {
	if !before.Hardware.Same(now.Hardware) {
		return c, fmt.Errorf("--compare: %s is of another kind of machine (processor, vendor, family, model, level, processors: %v there, %v here): compare files of one kind",
			file, before.Hardware.kind(), now.Hardware.kind())
	}
	c = Comparison{File: file, Warnings: []string{}}
	if b, n := before.Software.Kernels, now.Software.Kernels; b != n {
		c.Warnings = append(c.Warnings, fmt.Sprintf("kernels differ: %s in %s, %s now", b, file, n))
	}
	old := map[Figure]float64{}
	key := func(f Figure) Figure { return Figure{f.Group, f.Name, f.Unit, 0} }
	for _, f := range before.Figures() {
		old[key(f)] = f.Value
	}
	for _, f := range now.Figures() {
		row := Compared{Group: f.Group, Name: f.Name, Before: old[key(f)], Now: f.Value}
		if row.Before > 0 {
			row.Ratio = row.Now / row.Before
		}
		c.Rows = append(c.Rows, row)
	}
	return c, nil
}

// Below returns rows of one group whose ratio is less than least; rows without one do not count.
func (c Comparison) Below(group string, least float64) (list []Compared) {
	for _, r := range c.Rows {
		if r.Group == group && r.Ratio > 0 && r.Ratio < least {
			list = append(list, r)
		}
	}
	return list
}
