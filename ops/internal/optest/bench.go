package optest

import (
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Benchmark runs forward and backward of build's output and reports the rate of
// the matrix products.
func Benchmark(b *testing.B, precision string, build func(ns gorgonia.Nodes) *gorgonia.Node, wrt []int, inputs ...Input) {
	g, ns := Nodes(inputs)
	out := build(ns)
	cost := out
	if len(out.Shape()) > 0 {
		w := F32s(rand.New(rand.NewPCG(7, 7)), "test weights", out.Shape()...)
		inputs = append(inputs, w)
		ns = append(ns, gorgonia.NewTensor(g, tensor.Float32, len(w.Shape), gorgonia.WithShape(w.Shape...), gorgonia.WithName(w.Name)))
		cost = Dot(out, ns[len(ns)-1])
	}
	var params gorgonia.Nodes
	for _, i := range wrt {
		params = append(params, ns[i])
	}
	grads, err := gorgonia.Grad(cost, params...)
	if err != nil {
		b.Fatal(err)
	}
	engine, err := kernel.New(kernel.Options{Precision: precision})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	m := MachineOn(b, engine, g, ns, inputs, append(gorgonia.Nodes{cost}, grads...)...)
	if err := m.RunAll(); err != nil {
		b.Fatal(err)
	}
	m.ResetProfile()
	for b.Loop() {
		if err := m.RunAll(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, m.Profile())
}

// MachineOn is machine with an engine of its own.
func MachineOn(b *testing.B, engine *kernel.Engine, g *gorgonia.ExprGraph, ns gorgonia.Nodes, inputs []Input, outputs ...*gorgonia.Node) *exec.Machine {
	b.Helper()
	m, err := exec.Compile(g, exec.Config{Engine: engine, Outputs: outputs})
	if err != nil {
		b.Fatal(err)
	}
	for i, in := range inputs {
		if err := m.SetInput(ns[i], in.Data); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

// report names the time of every kind of op that matters.
func report(b *testing.B, p exec.Profile) {
	for _, k := range p.Kinds {
		if k.Time*20 < p.Time {
			continue
		}
		name := ""
		for _, r := range k.Kind {
			if r == ' ' {
				r = '-'
			}
			name += string(r)
		}
		b.ReportMetric(k.Time.Seconds()*1e6/float64(p.Runs), "us/"+name)
		if k.FLOPs > 0 {
			b.ReportMetric(float64(k.FLOPs)/k.Time.Seconds()/1e9, "GFLOPs/"+name)
		}
	}
}
