package recurrent

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestCases(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	var cases []optest.Case
	for _, p := range []problem{
		{r: 700, l: 3, in: 6, h: 16, lengths: optest.RandomInts(r, 700, 4)},
		{r: 700, l: 3, in: 6, h: 16, lengths: optest.RandomInts(r, 700, 4), reverse: true, start: true},
		{r: 9, l: 4, in: 6, h: 5},
	} {
		p = p.fill(r)
		cases = append(cases, optest.Case{Name: "gru", Inputs: p.inputs, WRT: p.wrt(), Build: p.build})
	}
	optest.CheckCases(t, cases)
}

// TestIdentity: calls that differ in one argument make different nodes.
func TestIdentity(t *testing.T) {
	p := problem{r: 4, l: 3, in: 2, h: 3, lengths: make([]int32, 4), start: true}.fill(rand.New(rand.NewPCG(10, 1)))
	g, ns := optest.Nodes(p.inputs)
	all := Args{X: ns[0], WeightIH: ns[1], WeightHH: ns[2], BiasIH: ns[3], BiasHH: ns[4], Len: 3}
	var builds []func() *gorgonia.Node
	for _, change := range []func(a *Args){
		func(*Args) {},
		func(a *Args) { a.Len = 4 },
		func(a *Args) { a.Reverse = true },
		func(a *Args) { a.Start = ns[5] },
		func(a *Args) { a.Start, a.Reverse = ns[5], true },
		func(a *Args) { a.Lengths = ns[6] },
	} {
		a := all
		change(&a)
		builds = append(builds, func() *gorgonia.Node { return GRU(a) })
	}
	u, v := &unit{l: 3}, &unit{l: 4}
	for _, of := range []func(u *unit) *gorgonia.Node{
		func(u *unit) *gorgonia.Node { return pack(ns[0], ns[6], u.l) },
		func(u *unit) *gorgonia.Node { return pack(ns[0], nil, u.l) },
	} {
		builds = append(builds, func() *gorgonia.Node { return of(u) }, func() *gorgonia.Node { return of(v) })
	}
	optest.CheckIdentity(t, g, builds)
}

// TestStale: a second run on other lengths leaves nothing of the first.
func TestStale(t *testing.T) {
	p := problem{r: 3, l: 5, in: 2, h: 4, lengths: []int32{5, 5, 5}}.fill(rand.New(rand.NewPCG(11, 1)))
	optest.CheckStale(t, []optest.StaleCase{{Name: "gru", Build: p.build, Fixed: p.inputs[:5], WRT: 5,
		Before: p.inputs[5:], After: []optest.Input{optest.I32s("lengths", []int32{1, 0, 3}, 3)}}})
}

func TestBuildErrors(t *testing.T) {
	p := problem{r: 2, l: 3, in: 2, h: 4, lengths: []int32{1, 2}, start: true}.fill(rand.New(rand.NewPCG(13, 1)))
	_, ns := optest.Nodes(p.inputs)
	for want, change := range map[string]func(a *Args){
		"an operand is nil":                 func(a *Args) { a.BiasHH = nil },
		"WeightHH must be a matrix":         func(a *Args) { a.WeightHH = ns[3] },
		"a sequence has at least one place": func(a *Args) { a.Len = 0 },
		"rows must be a multiple of 4":      func(a *Args) { a.Len = 4 },
		"weight_hh must have shape (3H, H)": func(a *Args) { a.WeightHH = ns[1] },
		"weight_ih must have shape (12, 2)": func(a *Args) { a.WeightIH = ns[2] },
		"bias_ih must have shape (12)":      func(a *Args) { a.BiasIH = ns[6] },
		"bias_hh must have shape (12)":      func(a *Args) { a.BiasHH = ns[0] },
		"start must have shape (2, 4)":      func(a *Args) { a.Start = ns[0] },
		"lengths must be a vector":          func(a *Args) { a.Lengths = ns[0] },
		"want x (R*L, I) (got":              func(a *Args) { a.X = ns[6] },
		"lengths must have shape (3)":       func(a *Args) { a.X = ns[1]; a.Len = 4 },
	} {
		a := Args{X: ns[0], Lengths: ns[6], WeightIH: ns[1], WeightHH: ns[2], BiasIH: ns[3], BiasHH: ns[4], Start: ns[5], Len: 3}
		change(&a)
		optest.BuildError(t, want, want, func() { GRU(a) })
	}
}

// TestTapeMachine runs a GRU on Gorgonia's own machine.
func TestTapeMachine(t *testing.T) {
	p := problem{r: 3, l: 4, in: 2, h: 5, lengths: []int32{4, 0, 2}, start: true}.fill(rand.New(rand.NewPCG(14, 1)))
	want, _ := optest.Gradients(t, p.build, p.wrt(), p.inputs...)
	g, ns := optest.Nodes(p.inputs)
	w := optest.F32s(rand.New(rand.NewPCG(7, 7)), "w", 12, 5)
	weights := gorgonia.NewTensor(g, gorgonia.Float32, 2, gorgonia.WithShape(12, 5), gorgonia.WithName("w"))
	grads := check.Get(gorgonia.Grad(optest.Dot(p.build(ns), weights), ns[:6]...))(t)
	for i, n := range append(ns, weights) {
		in := append(p.inputs, w)[i]
		check.OK(t, gorgonia.Let(n, tensor.New(tensor.WithShape(in.Shape...), tensor.WithBacking(in.Data))))
	}
	values := make([]gorgonia.Value, len(grads))
	for i, n := range grads {
		gorgonia.Read(n, &values[i])
	}
	m := gorgonia.NewTapeMachine(g)
	defer m.Close()
	check.OK(t, m.RunAll())
	for i, v := range values {
		optest.Near(t, "gradient of "+p.inputs[i].Name, v.Data().([]float32), want[i], 1e-5)
	}
}

// TestHalf: in bf16 states and gradients are those of operands rounded to bfloat16, products of
// which are exact, and the transposed weights take half the memory.
func TestHalf(t *testing.T) {
	p := problem{r: 20, l: 6, in: 40, h: 64, lengths: optest.RandomInts(rand.New(rand.NewPCG(15, 1)), 20, 7)}.fill(rand.New(rand.NewPCG(16, 1)))
	for _, in := range p.inputs[1:5] { // rounding in the steps should not build up
		for i := range in.Floats() {
			in.Floats()[i] /= 8
		}
	}
	run := func(precision string) (values [][]float32, forward int64) {
		e := check.Get(kernel.New(kernel.Options{Threads: 2, Precision: precision}))(t)
		defer e.Close()
		m, outputs := optest.Case{Inputs: p.inputs, WRT: p.wrt(), Build: p.build}.Compile(t, e)
		check.OK(t, m.RunAll())
		for _, n := range outputs[:6] {
			a := check.Get(m.Value(n))(t)
			values = append(values, slices.Clone(a.F32))
		}
		m, _ = optest.Case{Inputs: p.inputs, Build: p.build}.Compile(t, e)
		return values, m.Memory()
	}
	want, full := run("fp32")
	got, half := run("bf16")
	for i := range want {
		optest.Near(t, "result in bf16", got[i], want[i], 2e-2)
		if slices.Equal(got[i], want[i]) {
			t.Errorf("result %d is that of float32", i)
		}
	}
	if saved := full - half; saved < 3*64*64*2 {
		t.Errorf("%d bytes, %d in float32: the transposed weights are not stored in bfloat16", half, full)
	}
}

// TestMemory: the backward pass works in the memory of the gates, and nothing else of their size
// is kept.
func TestMemory(t *testing.T) {
	const r, l, h = 64, 20, 48
	p := problem{r: r, l: l, in: 4, h: h}.fill(rand.New(rand.NewPCG(17, 1)))
	m, _ := optest.Case{Inputs: p.inputs, WRT: p.wrt(), Build: p.build}.Compile(t, optest.Engine)
	// The gates, the states and their gradient, and states once more for a product.
	if most := int64(4 * r * l * h * 15 / 2); m.Memory() > most {
		t.Errorf("%d bytes, want at most %d", m.Memory(), most)
	}
}
